// Elements described as values, and brought into the document with as few changes as need be: an element that
// stays keeps its focus and its place. Text gets into the document as text only.

export type Child = VNode | string | number | null | undefined | false | Child[];
export type Props = Record<string, unknown>;

export interface VNode {
  tag: string;
  props: Props;
  children: (VNode | string)[];
}

function flatten(children: Child[], into: (VNode | string)[]): (VNode | string)[] {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) flatten(child, into);
    else if (typeof child === "number") into.push(String(child));
    else into.push(child);
  }
  return into;
}

/// Props: `key` tells siblings apart, `on...` listens, `style` is an object, null and false leave an attribute out.
/// `after` is called with the element once it is in the document.
export function h(tag: string, props: Props | null = null, ...children: Child[]): VNode {
  return { tag, props: props ?? {}, children: flatten(children, []) };
}

const asProperties = new Set(["value", "checked", "disabled", "selected"]);
const known = new WeakMap<Node, Props>();

function setProp(element: Element, name: string, value: unknown, before: unknown): void {
  if (name === "key" || name === "after") return;
  if (name.startsWith("on")) {
    if (before) element.removeEventListener(name.slice(2), before as EventListener);
    if (value) element.addEventListener(name.slice(2), value as EventListener);
    return;
  }
  if (name === "style") {
    const style = (element as HTMLElement).style;
    const old = (before ?? {}) as Record<string, string>;
    const next = (value ?? {}) as Record<string, string>;
    for (const one of Object.keys(old)) if (!(one in next)) style.removeProperty(one);
    for (const [one, text] of Object.entries(next)) if (old[one] !== text) style.setProperty(one, text);
    return;
  }
  if (asProperties.has(name)) {
    const target = element as unknown as Record<string, unknown>;
    // An option without a value has its text as one: that the two are equal now is not enough.
    if (before === undefined || target[name] !== value) target[name] = value ?? false;
    return;
  }
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (String(value) !== (before === undefined ? null : String(before)) || !element.hasAttribute(name)) element.setAttribute(name, value === true ? "" : String(value));
}

function setProps(element: Element, props: Props): void {
  const before = known.get(element) ?? {};
  for (const name of Object.keys(before)) if (!(name in props)) setProp(element, name, undefined, before[name]);
  for (const [name, value] of Object.entries(props)) if (value !== before[name] || asProperties.has(name)) setProp(element, name, value, before[name]);
  known.set(element, props);
}

function make(node: VNode, inSvg: boolean): Element {
  return inSvg || node.tag === "svg" ? document.createElementNS("http://www.w3.org/2000/svg", node.tag) : document.createElement(node.tag);
}

function fits(existing: Node, wanted: VNode | string): boolean {
  if (typeof wanted === "string") return existing.nodeType === Node.TEXT_NODE;
  return existing instanceof Element && existing.localName === wanted.tag && known.has(existing) && known.get(existing)!.key === wanted.props.key;
}

/// Makes the children of `parent` what `wanted` says.
export function patch(parent: Element, wanted: Child[]): void {
  const children = flatten(wanted, []);
  const keys = new Set(children.map((one) => (typeof one === "string" ? undefined : one.props.key)));
  const byKey = new Map<unknown, ChildNode>();
  for (const one of Array.from(parent.childNodes)) {
    const key = known.get(one)?.key;
    if (key === undefined) continue;
    // What goes, goes first: then what stays need not be moved, which would cost it its focus.
    if (keys.has(key)) byKey.set(key, one);
    else one.remove();
  }
  const inSvg = parent.namespaceURI === "http://www.w3.org/2000/svg";
  let at: ChildNode | null = parent.firstChild;
  for (const child of children) {
    const key = typeof child === "string" ? undefined : child.props.key;
    const same: ChildNode | null | undefined = key === undefined ? at : byKey.get(key);
    let target: ChildNode;
    if (same && fits(same, child)) target = same;
    else target = typeof child === "string" ? document.createTextNode(child) : make(child, inSvg);
    if (target === at) at = at.nextSibling;
    else parent.insertBefore(target, at);
    if (typeof child === "string") {
      if (target.nodeValue !== child) target.nodeValue = child;
      continue;
    }
    fill(target as Element, child);
  }
  while (at) {
    const next: ChildNode | null = at.nextSibling;
    at.remove();
    at = next;
  }
}

function fill(element: Element, node: VNode): void {
  // A select shows a value only once it has its options.
  if (node.tag !== "select") setProps(element, node.props);
  patch(element, node.children);
  if (node.tag === "select") setProps(element, node.props);
  (node.props.after as ((made: Element) => void) | undefined)?.(element);
}
