/** Held memories: release one with a reason, or keep it out for good. */

import { useSignal } from "@preact/signals";

import { call, idempotencyKey, inWords } from "./api";
import { say } from "./notice";
import { after, Empty, focusTitle, Pages, ScreenWords, VerdictChip } from "./parts";
import { Inline, Marked } from "./text";
import { when } from "./time";
import type { Held } from "./types";

async function held(cursor: string | null) {
  const found = await call<{ memories: Held[]; next_cursor: string | null }>("GET", `/quarantine?limit=50${after(cursor)}`);
  return { rows: found.memories, next: found.next_cursor };
}

export function QuarantineTab() {
  return (
    <Pages load={held}>
      {(memories, reload) =>
        memories.length === 0 ? (
          <Empty title="Nothing is held">Direct writes that the screen doubts wait here for a person.</Empty>
        ) : (
          <ul class="cards">{memories.map((m) => <HeldCard key={m.memory_id} memory={m} reload={reload} />)}</ul>
        )
      }
    </Pages>
  );
}

function HeldCard({ memory, reload }: { memory: Held; reload: () => void }) {
  const reason = useSignal("");
  const failed = useSignal<string | null>(null);
  const busy = useSignal(false);
  const decidable = memory.content !== undefined && !memory.masked && memory.held_for.includes("screen");
  const act = async (what: "release" | "reject") => {
    busy.value = true;
    const why = reason.value.trim();
    try {
      await call("POST", `/quarantine/${memory.memory_id}/${what}`, {
        body: { content_digest: memory.content_digest, ...(why ? { reason: why } : {}) },
        headers: idempotencyKey(),
      });
      say("good", what === "release" ? "Released: recall can return it now." : "Kept out for good.");
      focusTitle();
      reload();
    } catch (error) {
      failed.value = inWords(error);
    } finally {
      busy.value = false;
    }
  };
  return (
    <li class="card">
      <div class="chips">
        {memory.screen !== undefined && <VerdictChip screen={memory.screen} />}
        {memory.kind !== undefined && <span class="chip">{memory.kind}</span>}
        {memory.held_for.filter((why) => why !== "screen").map((why) => <span key={why} class="chip warn">{why === "rejected" ? "kept out for good" : why}</span>)}
        <span class="muted">{when(memory.created_at)}, from {memory.source.replaceAll("_", " ")}</span>
      </div>
      {memory.title != null && <h2 dir="auto"><Inline text={memory.title} /></h2>}
      {memory.content === undefined ? (
        <p class="muted">A private memory: its text is its owner's alone.</p>
      ) : (
        <Marked text={memory.content} signals={(memory.screen?.signals ?? []).filter((s) => s.field === "/content")} />
      )}
      {memory.screen !== undefined && <ScreenWords screen={memory.screen} />}
      {memory.masked && <p class="hindrance">Personal data is masked for you: somebody with that capability must decide.</p>}
      <p class="muted id">{memory.memory_id}</p>
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      {decidable && (
        <form class="actions" onSubmit={(event) => { event.preventDefault(); if (reason.value.trim()) void act("release"); }}>
          <label class="grow">
            Reason (a release needs one)
            <input value={reason.value} maxLength={500} dir="auto" onInput={(e) => (reason.value = e.currentTarget.value)} />
          </label>
          <button type="submit" class="primary" disabled={busy.value || !reason.value.trim()}>Release</button>
          <button type="button" class="danger" disabled={busy.value} onClick={() => void act("reject")}>Keep out</button>
        </form>
      )}
    </li>
  );
}
