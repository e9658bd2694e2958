/** What retention has taken from view, and the scheduled reports. Ids and dates, never text. */

import { useSignal } from "@preact/signals";

import { call, inWords } from "./api";
import { after, Pages } from "./parts";
import { day, when } from "./time";
import type { DecayReport, DecayRow } from "./types";

interface Listed {
  report_id: string;
  created_at: string;
  counts: DecayReport["counts"];
}

async function decayed(cursor: string | null) {
  const found = await call<{ memories: DecayRow[]; next_cursor: string | null }>("GET", `/decayed?limit=50${after(cursor)}`);
  return { rows: found.memories, next: found.next_cursor };
}

async function reports(cursor: string | null) {
  const found = await call<{ reports: Listed[]; next_cursor: string | null }>("GET", `/decay-reports?limit=20${after(cursor)}`);
  return { rows: found.reports, next: found.next_cursor };
}

const REASONS = { per_chunk: "an expiry date of its own", kind_policy: "the retention of its kind" };

function total(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, n) => sum + n, 0);
}

export function DecayTab() {
  const opened = useSignal<DecayReport | null>(null);
  const failed = useSignal<string | null>(null);
  const open = (id: string) => {
    call<DecayReport>("GET", `/decay-reports/${id}`).then(
      (found) => { opened.value = found; failed.value = null; },
      (error: unknown) => (failed.value = inWords(error)),
    );
  };
  return (
    <div class="sections">
      <section aria-labelledby="decayed-title">
        <h2 id="decayed-title">Decayed now</h2>
        <Pages load={decayed}>
          {(rows) =>
            rows.length === 0 ? (
              <p class="muted">Nothing has decayed. Memories leave recall when their own expiry or the retention of their kind is over.</p>
            ) : (
              <Rows rows={rows} label="Decayed memories" date="Decayed" />
            )
          }
        </Pages>
      </section>
      <section aria-labelledby="reports-title">
        <h2 id="reports-title">Reports</h2>
        {failed.value !== null && <p class="banner bad" role="alert">{failed.value}</p>}
        <Pages load={reports}>
          {(rows) =>
            rows.length === 0 ? (
              <p class="muted">No report yet: one is written every day.</p>
            ) : (
              <ul class="reports">
                {rows.map((r) => (
                  <li key={r.report_id}>
                    <button type="button" aria-expanded={opened.value?.report_id === r.report_id} onClick={() => open(r.report_id)}>
                      {when(r.created_at)}
                    </button>
                    <span class="muted">{total(r.counts.decayed)} decayed, {total(r.counts.expiring)} soon</span>
                  </li>
                ))}
              </ul>
            )
          }
        </Pages>
        {opened.value !== null && <Report report={opened.value} />}
      </section>
    </div>
  );
}

function Report({ report }: { report: DecayReport }) {
  return (
    <article class="card" aria-label={`Report of ${when(report.at)}`}>
      <h3>As of {when(report.at)}, looking ahead to {day(report.until)}</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="By kind">
        <table>
          <thead><tr><th scope="col">Kind</th><th scope="col">Kept for</th><th scope="col">Decayed</th><th scope="col">Soon</th></tr></thead>
          <tbody>
            {Object.entries(report.retention).sort().map(([kind, days]) => (
              <tr key={kind}>
                <th scope="row">{kind}</th><td>{days} days</td>
                <td>{report.by_kind[kind]?.decayed ?? 0}</td><td>{report.by_kind[kind]?.expiring ?? 0}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {report.expiring.length > 0 && <Rows rows={report.expiring} label="Memories that will decay" date="Decays" />}
      {report.page !== null && <p><a href={report.page} target="_blank" rel="noreferrer">The report as a page</a> <span class="muted">(the link works for five minutes)</span></p>}
    </article>
  );
}

function Rows({ rows, label, date }: { rows: DecayRow[]; label: string; date: string }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead><tr><th scope="col">Memory</th><th scope="col">Kind</th><th scope="col">Space</th><th scope="col">{date}</th><th scope="col">Because of</th></tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.memory_id}>
              <td class="id">{row.memory_id}</td><td>{row.kind}</td><td>{row.space.replaceAll("_", " ")}</td>
              <td>{day(row.expiry)}</td><td>{REASONS[row.retention_reason]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
