/** The keyboard: what the keys do, and the switch that turns single keys off (WCAG 2.1.4). */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

const KEPT = "remembrancer.keys";
const KEYS: [string, string][] = [
  ["J / K", "next, previous proposal"],
  ["A", "approve"],
  ["S", "approve and supersede the memory in conflict"],
  ["R", "reject, with a reason if you like"],
  ["E", "edit; Ctrl Enter saves"],
  ["X", "select for a batch"],
  ["U", "undo, while the request has not left"],
  ["Esc", "leave a form"],
  ["?", "this help"],
];

export const singleKeys = signal(localStorage.getItem(KEPT) !== "off");
export const help = signal(false);

export function setSingleKeys(on: boolean): void {
  singleKeys.value = on;
  localStorage.setItem(KEPT, on ? "on" : "off");
}

/** `?` on every tab. */
export function listenForHelp(): () => void {
  const press = (event: KeyboardEvent) => {
    if (event.key !== "?" || !singleKeys.value || (event.target as HTMLElement).closest("input, textarea, select, dialog") !== null) return;
    event.preventDefault();
    help.value = true;
  };
  addEventListener("keydown", press);
  return () => removeEventListener("keydown", press);
}

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={() => (help.value = false)} aria-labelledby="help-title">
      <h2 id="help-title">Keyboard</h2>
      <dl class="facts">{KEYS.map(([key, what]) => <><dt><kbd>{key}</kbd></dt><dd>{what}</dd></>)}</dl>
      <p class="muted">In the list the arrow keys, Home and End move as well, without the switch.</p>
      <label class="switch">
        <input type="checkbox" checked={singleKeys.value} onChange={(event) => setSingleKeys(event.currentTarget.checked)} />
        Single keys decide
      </label>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}
