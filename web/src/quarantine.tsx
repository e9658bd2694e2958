/** Held memories: release one with a reason, or keep it out for good. */

import { useSignal } from "@preact/signals";
import { Fragment } from "preact";

import { call } from "./api";
import { entity, relation } from "./changes";
import { after, Empty, Pages, ScreenWords, VerdictChip } from "./parts";
import { SettleCard } from "./request";
import { Inline, Marked } from "./text";
import { day, when } from "./time";
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
  const personal = memory.space === "private";
  const decidable = !personal && memory.content !== undefined && !memory.masked && memory.held_for.includes("screen");
  const path = `/quarantine/${memory.memory_id}`;
  const why = reason.value.trim();
  const body = { content_digest: memory.content_digest, ...(why ? { reason: why } : {}) };
  return (
    <SettleCard reload={reload} actions={(settle, busy) => decidable && (
      <form class="actions" onSubmit={(event) => {
        event.preventDefault();
        if (why) settle(`${path}/release`, body, "Released: recall can return it now.");
      }}>
        <label class="grow">
          Reason (a release needs one)
          <input value={reason.value} maxLength={500} dir="auto" onInput={(e) => (reason.value = e.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={busy || !why}>Release</button>
        <button type="button" class="danger" disabled={busy} onClick={() => settle(`${path}/reject`, body, "Kept out for good.")}>Keep out</button>
      </form>
    )}>
      <div class="chips">
        {memory.screen !== undefined && <VerdictChip screen={memory.screen} />}
        {memory.kind !== undefined && <span class="chip">{memory.kind}</span>}
        {memory.held_for.filter((held) => held !== "screen").map((held) => <span key={held} class="chip warn">{held}</span>)}
        <span class="muted">{when(memory.created_at)}, from {memory.source.replaceAll("_", " ")}</span>
      </div>
      {memory.title != null && <h2 dir="auto"><Inline text={memory.title} /></h2>}
      {memory.content === undefined ? (
        <p class="muted">A private memory: its text is its owner's alone.</p>
      ) : (
        <Marked text={memory.content} signals={(memory.screen?.signals ?? []).filter((s) => s.field === "/content")} />
      )}
      {memory.content !== undefined && <HeldFacts memory={memory} />}
      {memory.screen !== undefined && <ScreenWords screen={memory.screen} />}
      {personal && <p class="hindrance">Private: nobody decides on it. It stays out of recall until it expires or is erased.</p>}
      {memory.masked && <p class="hindrance">Personal data is masked for you: somebody with that capability must decide.</p>}
      <p class="muted id">{memory.memory_id}</p>
    </SettleCard>
  );
}

/** What a release lets others see beside the text: the screen may hold the memory for any of it. */
function HeldFacts({ memory }: { memory: Held }) {
  const { observed_at, valid_from, valid_to, graph } = memory;
  const dated = (valid_from ?? null) !== null || (valid_to ?? null) !== null;
  const facts: [string, string][] = [
    ["Domain", memory.domain ?? ""],
    ["Said by", memory.author ?? ""],
    ["Said", observed_at == null ? "" : day(observed_at)],
    ["True", dated ? `from ${day(valid_from ?? null)} until ${valid_to == null ? "further notice" : day(valid_to)}` : ""],
    ["Where it stands", memory.source_uri ?? ""],
    ["Revision", memory.revision ?? ""],
    ["Under", memory.heading_path ?? ""],
    ["About", (memory.data_subjects ?? []).join(", ")],
    ["Entities", (graph?.entities ?? []).map(entity).join("; ")],
    ["Relations", (graph?.relations ?? []).map(relation).join("; ")],
    ["Its sender claims", (memory.claims ?? []).join("; ")],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, text]) => text !== "").map(([name, text]) => (
        <Fragment key={name}><dt>{name}</dt><dd><Inline text={text} /></dd></Fragment>
      ))}
    </dl>
  );
}
