/** The last step before something that cannot be undone: a word typed, not a button hit. */

import { useSignal } from "@preact/signals";

export function Confirm({ busy, act }: { busy: boolean; act: () => void }) {
  const word = useSignal("");
  const ready = word.value === "erase" && !busy;
  return (
    <form class="actions" onSubmit={(event) => { event.preventDefault(); if (ready) act(); }}>
      <label class="grow">Type “erase” to confirm <input value={word.value} autocomplete="off" onInput={(e) => (word.value = e.currentTarget.value)} /></label>
      <button type="submit" class="danger" disabled={!ready}>Erase for good</button>
    </form>
  );
}
