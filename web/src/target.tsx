/** What an erasure or a legal hold names: memories, a data subject, or an owner; exactly one of them. */

import type { Signal } from "@preact/signals";

import type { Principal } from "./types";

export type By = "memory_ids" | "data_subject" | "owner";

const NAMES: Record<By, string> = { memory_ids: "Memory ids", data_subject: "A data subject", owner: "All of a principal's" };

export interface Target {
  by: By;
  text: string;
}

/** The member of the request, or null while nothing is named. */
export function named({ by, text }: Target): Record<string, string | string[]> | null {
  if (by === "memory_ids") {
    const ids = text.split(/[\s,]+/).filter(Boolean);
    return ids.length === 0 ? null : { memory_ids: ids };
  }
  return text.trim() === "" ? null : { [by]: text.trim() };
}

export function TargetFields({ target, kinds, people = [] }: { target: Signal<Target>; kinds: By[]; people?: Principal[] }) {
  const { by, text } = target.value;
  const write = (value: string) => (target.value = { by, text: value });
  return (
    <>
      <label>What
        <select value={by} onChange={(e) => (target.value = { by: e.currentTarget.value as By, text: "" })}>
          {kinds.map((kind) => <option key={kind} value={kind}>{NAMES[kind]}</option>)}
        </select>
      </label>
      {by === "memory_ids" && (
        <label>Memory ids <textarea class="id" rows={3} value={text} placeholder="mem_…" onInput={(e) => write(e.currentTarget.value)} /></label>
      )}
      {by === "data_subject" && (
        <label>Data subject, as captures name it <input value={text} maxLength={128} dir="auto" autocomplete="off" onInput={(e) => write(e.currentTarget.value)} /></label>
      )}
      {by === "owner" && (
        <label>Principal
          <select value={text} onChange={(e) => write(e.currentTarget.value)}>
            <option value="">Choose…</option>
            {people.map((p) => <option key={p.principal_id} value={p.principal_id}>{p.name} ({p.kind})</option>)}
          </select>
        </label>
      )}
    </>
  );
}
