// Dialogs: a question before something changes, and what the keys do.

function element<K extends keyof HTMLElementTagNameMap>(tag: K, text: string, more: Record<string, string> = {}): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(more)) made.setAttribute(name, value);
  return made;
}

function show(content: Element[], buttons: { label: string; id: string; result: boolean; isDanger?: boolean }[]): Promise<boolean> {
  const dialog = document.createElement("dialog");
  const row = element("p", "", { class: "buttons" });
  return new Promise((resolve) => {
    let result = false;
    for (const one of buttons) {
      const made = element("button", one.label, { type: "button", id: one.id });
      if (one.isDanger) made.className = "danger";
      made.addEventListener("click", () => {
        result = one.result;
        dialog.close();
      });
      row.append(made);
    }
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    dialog.append(...content, row);
    document.body.append(dialog);
    dialog.showModal();
  });
}

/// Whether the reader confirms what `deed` names ("Kill stage 2 of rank 2"). Escape does not, nor does Enter unless the button was chosen:
/// Cancel has the focus.
export function confirmed(deed: string, detail: string, isDanger: boolean): Promise<boolean> {
  return show([element("h2", `${deed}?`), element("p", detail)], [
    { label: "Cancel", id: "cancel", result: false },
    { label: deed, id: "confirm", result: true, isDanger },
  ]);
}

const keyTexts: [string, string][] = [
  ["1 … 7", "views"],
  ["/", "filter of this view"],
  ["[ and ]", "a second back or ahead; with Shift ten"],
  ["l", "the present"],
  ["+ and -", "zoom of the timeline"],
  ["arrows, Home, End", "move in the supervision tree; Enter opens an actor"],
  ["Tab", "from one part to the next"],
  ["?", "this help"],
];

export async function showKeys(): Promise<void> {
  const list = document.createElement("dl");
  list.className = "facts";
  for (const [key, text] of keyTexts) {
    const row = document.createElement("div");
    row.append(element("dt", key), element("dd", text));
    list.append(row);
  }
  await show([element("h2", "Keys"), list], [{ label: "Close", id: "close", result: true }]);
}
