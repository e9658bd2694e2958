/** Open contradictions between memories. */

import { useSignal } from "@preact/signals";

import { call, idempotencyKey, inWords } from "./api";
import { say } from "./notice";
import { after, Empty, focusTitle, Pages } from "./parts";
import { Difference, Inline } from "./text";
import { day, when } from "./time";
import type { ConflictRow, Memory } from "./types";

async function open(cursor: string | null) {
  const found = await call<{ conflicts: ConflictRow[]; next_cursor: string | null }>("GET", `/conflicts?limit=50${after(cursor)}`);
  return { rows: found.conflicts, next: found.next_cursor };
}

export function ConflictsTab() {
  return (
    <Pages load={open}>
      {(conflicts, reload) =>
        conflicts.length === 0 ? (
          <Empty title="No open conflicts">Contradictions between memories appear here; nothing overwrites by itself.</Empty>
        ) : (
          <ul class="cards">{conflicts.map((c) => <ConflictCard key={c.conflict_id} conflict={c} reload={reload} />)}</ul>
        )
      }
    </Pages>
  );
}

function ConflictCard({ conflict, reload }: { conflict: ConflictRow; reload: () => void }) {
  const failed = useSignal<string | null>(null);
  const busy = useSignal(false);
  const [newer, older] = conflict.sides;
  const close = async (resolution: "resolved" | "dismissed") => {
    busy.value = true;
    try {
      await call("POST", `/conflicts/${conflict.conflict_id}/resolve`, { body: { resolution }, headers: idempotencyKey() });
      say("good", resolution === "resolved" ? "Closed as resolved." : "Closed: no contradiction.");
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
      <p class="muted"><Inline text={conflict.explanation} /> Open since {when(conflict.opened_at)}.</p>
      <div class="texts two">
        {older !== undefined && <section><Side name="Earlier" memory={older} /><p class="stored" dir="auto"><Inline text={older.text} /></p></section>}
        {newer !== undefined && (
          <section>
            <Side name="Later" memory={newer} />
            <Difference before={older?.text ?? newer.text} after={newer.text} />
          </section>
        )}
      </div>
      {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
      <div class="actions">
        <button type="button" disabled={busy.value} onClick={() => void close("resolved")}>Resolved</button>
        <button type="button" disabled={busy.value} onClick={() => void close("dismissed")}>No contradiction</button>
      </div>
    </li>
  );
}

function Side({ name, memory }: { name: string; memory: Memory }) {
  return (
    <h2 class="label">
      {name}, {day(memory.observed_at ?? memory.created_at)}
      {memory.author !== null && <>, by <Inline text={memory.author} /></>}
    </h2>
  );
}
