import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { clock, guidance, hint, HINTS, LANGUAGES, percent, preferred, setLanguage, t } from "../src/ui/texts";

const reasons = JSON.parse(readFileSync(new URL("../../../src/phase_rppg/session/reasons.json", import.meta.url), "utf8"));
const html = readFileSync(new URL("../index.html", import.meta.url), "utf8");
const placeholders = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).sort();

afterEach(() => setLanguage("en"));

describe.each(Object.entries(LANGUAGES))("the texts of %s", (name, texts) => {
  it("have exactly the keys of English, none empty", () => {
    expect(Object.keys(texts).sort()).toEqual(Object.keys(LANGUAGES.en).sort());
    expect(Object.values(texts).filter((text) => text.trim() === "")).toEqual([]);
  });

  it("have the values of the English texts", () => {
    const wrong = Object.keys(LANGUAGES.en).filter((key) => `${placeholders(texts[key])}` !== `${placeholders(LANGUAGES.en[key])}`);
    expect(wrong).toEqual([]);
  });

  it("cover every reason and every hint of the shared file", () => {
    const needed = [...Object.keys(reasons.reasons).map((reason) => `reason.${reason}`), ...reasons.hints.map(({ quality }: { quality: string }) => `hint.${quality}`)];
    expect(needed.filter((key) => !(key in texts))).toEqual([]);
  });

  it.runIf(name !== "en")("are translated", () => {
    const same = Object.keys(texts).filter((key) => texts[key] === LANGUAGES.en[key] && texts[key].length > 18);
    expect(same).toEqual([]);
  });
});

describe("the page", () => {
  it("names only texts that exist, and has them in English", () => {
    const named = [...html.matchAll(/data-(?:text|label)="([^"]+)"/g)].map(([, key]) => key);
    expect(named.length).toBeGreaterThan(30);
    expect(named.filter((key) => !(key in LANGUAGES.en))).toEqual([]);
  });
});

describe("the language", () => {
  it("is the first one that the browser wants and the page has", () => {
    expect(preferred(["fr-FR", "zh-TW", "de"])).toBe("zh");
    expect(preferred(["DE-at", "en"])).toBe("de");
    expect(preferred(["fr"])).toBe("en");
    expect(preferred([])).toBe("en");
  });

  it("fills in values and keeps unknown ones visible", () => {
    setLanguage("de");
    expect(t("provisional.text", { bpm: 70, seconds: 3 })).toBe("Etwa 70, misst noch. Still halten: noch 3 s.");
    expect(t("about")).toBe("etwa {bpm}");
    expect(guidance("TOO_DARK")).toContain("Licht");
  });

  it("takes English advice from the file that Python reads", () => {
    expect(guidance("MOTION")).toBe(reasons.reasons.MOTION.guidance);
    const limits = Object.fromEntries(HINTS.map(({ quality, below, above }) => [quality, below === undefined ? above! - 1e-9 : below]));
    expect(hint(limits as never)).toBeNull();
    expect(hint({ ...limits, luma: limits.luma - 1 } as never)).toBe(reasons.hints.find((one: { quality: string }) => one.quality === "luma").text);
  });
});

describe("numbers as text", () => {
  it("are never quite certain", () => expect([percent(0), percent(0.5), percent(1)]).toEqual(["1 %", "50 %", "99 %"]));
  it("show hours when there are any", () => expect([clock(61.4), clock(3661), clock(-1)]).toEqual(["1:01", "1:01:01", "0:00"]));
});
