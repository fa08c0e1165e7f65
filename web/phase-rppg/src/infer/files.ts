/** The files that the page shares with Python, each checked against its SHA-256. */

const INDEX = "models/index.json";

/** Fetches shared files and checks their hashes. */
export class ModelFiles {
  private constructor(private readonly base: string, private readonly hashes: Readonly<Record<string, string>>) {}

  static async open(base: string): Promise<ModelFiles> {
    const answer = await fetch(new URL(INDEX, base));
    if (!answer.ok) throw new Error(`${INDEX} is missing (${answer.status}); the page is not complete`);
    return new ModelFiles(base, (await answer.json()) as Record<string, string>);
  }

  /** Sorted names below a folder. */
  list(folder: string, suffix: string): string[] {
    return Object.keys(this.hashes).filter((name) => name.startsWith(`${folder}/`) && name.endsWith(suffix)).sort();
  }

  async bytes(name: string): Promise<Uint8Array> {
    const answer = await fetch(new URL(name, this.base));
    if (!answer.ok) throw new Error(`${name} is missing (${answer.status})`);
    const data = new Uint8Array(await answer.arrayBuffer());
    await verify(name, data, this.hashes[name]);
    return data;
  }

  async json(name: string): Promise<unknown> {
    return JSON.parse(new TextDecoder().decode(await this.bytes(name)));
  }
}

/** Throw an error if the data does not have the expected SHA-256. */
export async function verify(name: string, data: Uint8Array, expected: string | undefined): Promise<void> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data as Uint8Array<ArrayBuffer>));
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (hex !== expected) throw new Error(`${name} is damaged: its SHA-256 is ${hex.slice(0, 12)}…, not ${expected?.slice(0, 12) ?? "listed"}…`);
}
