/** What is different between two states of a proposal, field by field. */

import { Difference } from "./text";
import { day } from "./time";
import type { Proposal, Relation } from "./types";

export function relation(r: Relation): string {
  const object = r.object ?? `${r.value?.value ?? ""}${r.value?.unit ? ` ${r.value.unit}` : ""}`;
  return `${r.subject} ${r.polarity === "-" ? "not " : ""}${r.predicate.replaceAll("_", " ")} ${object}`;
}

const FIELDS: [string, (p: Proposal) => string][] = [
  ["Title", (p) => p.title ?? ""],
  ["Text", (p) => p.content],
  ["Kind", (p) => p.kind],
  ["Domain", (p) => p.domain ?? ""],
  ["True from", (p) => (p.valid_from === null ? "" : day(p.valid_from))],
  ["True until", (p) => (p.valid_to === null ? "" : day(p.valid_to))],
  ["About", (p) => p.data_subjects.join(", ")],
  ["Entities", (p) => p.entities.map((e) => `${e.name} (${e.kind})`).join(", ")],
  ["Relations", (p) => p.relations.map(relation).join("; ")],
];

export function Changes({ before, after }: { before: Proposal; after: Proposal }) {
  const changed = FIELDS.filter(([, of]) => of(before) !== of(after));
  if (changed.length === 0) return <p>Something changed that this page does not show.</p>;
  return (
    <>
      {changed.map(([name, of]) => (
        <div key={name} class="change">
          <h3>{name}</h3>
          <Difference before={of(before)} after={of(after)} />
        </div>
      ))}
    </>
  );
}
