/** Open contradictions between memories. */

import { call } from "./api";
import { after, Empty, Pages } from "./parts";
import { SettleCard } from "./request";
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
  const [newer, older] = conflict.sides;
  const path = `/conflicts/${conflict.conflict_id}/resolve`;
  return (
    <SettleCard reload={reload} actions={(settle, busy) => (
      <div class="actions">
        <button type="button" disabled={busy} onClick={() => settle(path, { resolution: "resolved" }, "Closed as resolved.")}>Resolved</button>
        <button type="button" disabled={busy} onClick={() => settle(path, { resolution: "dismissed" }, "Closed: no contradiction.")}>No contradiction</button>
      </div>
    )}>
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
    </SettleCard>
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
