// Elements of index.html by their ids.

/** Throws if it is missing: then the page and its script are of different builds. */
export function element<K extends keyof HTMLElementTagNameMap = "div">(id: string, tag?: K): HTMLElementTagNameMap[K] {
  const found = document.getElementById(id);
  if (!found || (tag && found.localName !== tag)) throw new Error(`the page has no ${tag ?? "element"} ${id}`);
  return found as HTMLElementTagNameMap[K];
}

/** An element with text and classes. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  classes = "",
  ...inside: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  made.append(...inside);
  return made;
}

/** Writes text only when it is another: the layout is left alone otherwise. */
export function write(into: HTMLElement, text: string): void {
  if (into.textContent !== text) into.textContent = text;
}

/** A click of a pointer gives the focus back, so that Space fires and does not press the button again. */
export function onPress(button: HTMLElement, press: () => void): void {
  button.addEventListener("click", (event) => {
    press();
    if (event.detail > 0) document.getElementById("arena")?.focus({ preventScroll: true });
  });
}
