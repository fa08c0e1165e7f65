/** The list of stored measurements, with export and deletion. */

import { type Entry, History } from "./history";
import { element, scrollable, table } from "./report";
import { clock, date, t } from "./texts";

export class HistoryView {
  private readonly history = new History();
  private confirming = false;

  constructor(private readonly section: HTMLElement, private readonly body: HTMLElement, private readonly save: (name: string, text: string, type: string) => void) {}

  /** Store a result; return a problem in words, or null. */
  async add(entry: Entry): Promise<string | null> {
    try {
      await this.history.add(entry);
      return null;
    } catch (error) {
      return t("history.failed", { problem: error instanceof Error ? error.message : String(error) });
    } finally {
      await this.show(true);
    }
  }

  /** Show the stored measurements; without the user's wish only those that exist already. */
  async show(wanted: boolean): Promise<void> {
    this.confirming = false;
    const entries = wanted ? await this.history.list().catch(() => []) : [];
    this.section.hidden = !wanted;
    this.draw(entries);
  }

  private draw(entries: readonly Entry[]): void {
    const where = element("p", [t("history.where")], "small");
    if (entries.length === 0) return this.body.replaceChildren(element("p", [t("history.empty")]), where);
    const rows = entries.map((entry) => this.row(entry));
    const list = table([t("history.date"), t("history.median"), t("history.range"), t("history.measured"), t("summary.quality"), ""], rows);
    list.querySelector("th:last-child")!.remove();
    list.querySelector("thead tr")!.append(element("td"));
    const actions = this.confirming
      ? [element("span", [t("history.confirm")]), this.button(t("history.yes"), () => this.deleteAll(), "history-yes"), this.button(t("history.no"), () => this.redraw(entries, false), "history-no")]
      : [this.button(t("history.export"), () => this.export(entries), "history-export"), this.button(t("history.delete-all"), () => this.redraw(entries, true), "history-delete")];
    this.body.replaceChildren(scrollable(list, t("history.list")), element("div", actions, "controls"), where);
  }

  private redraw(entries: readonly Entry[], confirming: boolean): void {
    this.confirming = confirming;
    this.draw(entries);
    this.body.querySelector<HTMLElement>(confirming ? "#history-no" : "#history-delete")?.focus();
  }

  private row({ id, numbers }: Entry): HTMLElement {
    const when = date(new Date(id));
    const remove = this.button("×", async () => {
      await this.history.delete(id);
      await this.show(true);
    }, "");
    remove.setAttribute("aria-label", t("history.delete", { date: when }));
    remove.className = "quiet";
    const cells = [when, String(Math.round(numbers.medianBpm)), `${Math.round(numbers.lowBpm)}–${Math.round(numbers.highBpm)}`, clock(numbers.measuredS), t(`summary.quality.${numbers.grade}`)];
    return element("tr", [...cells.map((text) => element("td", [text])), element("td", [remove])]);
  }

  private button(text: string, action: () => void | Promise<void>, id: string): HTMLButtonElement {
    const made = element("button", [text]) as HTMLButtonElement;
    made.type = "button";
    if (id) made.id = id;
    made.addEventListener("click", () => void action());
    return made;
  }

  private export(entries: readonly Entry[]): void {
    const rows = entries.map(({ id, ...rest }) => ({ ended: new Date(id).toISOString(), ...rest }));
    this.save("phase-live-history.json", JSON.stringify(rows, null, 2), "application/json");
  }

  private async deleteAll(): Promise<void> {
    await this.history.deleteAll();
    await this.show(true);
  }
}
