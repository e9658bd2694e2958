/** What is different between two states of a proposal, field by field. */

import { Difference } from "./text";
import { day } from "./time";
import type { Proposal, Relation } from "./types";

export function relation(r: Relation): string {
  const object = r.object ?? `${r.value?.value ?? ""}${r.value?.unit ? ` ${r.value.unit}` : ""}`;
  const from = r.valid_from == null ? "" : `, from ${day(r.valid_from)}`;
  const until = r.valid_to == null ? "" : `, until ${day(r.valid_to)}`;
  return `${r.subject} ${r.polarity === "-" ? "not " : ""}${r.predicate.replaceAll("_", " ")} ${object}${from}${until}`;
}

export function entity(e: Proposal["entities"][number]): string {
  const aliases = e.aliases?.length ? `, also ${e.aliases.join(", ")}` : "";
  return `${e.name} (${e.kind}${aliases})`;
}

const FIELDS: [string, (p: Proposal) => string][] = [
  ["Title", (p) => p.title ?? ""],
  ["Text", (p) => p.content],
  ["Kind", (p) => p.kind],
  ["Domain", (p) => p.domain ?? ""],
  ["Stated or inferred", (p) => p.assertion_kind],
  ["Said by", (p) => p.author ?? ""],
  ["Said", (p) => p.observed_at ?? ""],
  ["True from", (p) => p.valid_from ?? ""],
  ["True until", (p) => p.valid_to ?? ""],
  ["Kept until", (p) => p.memory_expires_at ?? ""],
  ["Captured from", (p) => p.source],
  ["Where it stands", (p) => p.source_uri ?? ""],
  ["Revision", (p) => p.revision ?? ""],
  ["About", (p) => p.data_subjects.join(", ")],
  ["Entities", (p) => p.entities.map(entity).join("; ")],
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
