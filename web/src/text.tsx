/** Stored text on the page: always text, with signals marked, hidden characters shown, differences marked. */

import { diffWordsWithSpace } from "diff";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import type { Signal } from "./types";

const NAMES: Record<number, string> = {
  0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x2060: "WJ", 0xfeff: "BOM", 0xad: "SHY",
  0x200e: "LRM", 0x200f: "RLM", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO",
  0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0x2028: "LS", 0x2029: "PS",
};

const INVISIBLE = /\p{Default_Ignorable_Code_Point}|\p{Cc}|\u2028|\u2029/u;
/** Parts of ordinary emoji and words, as long as they stand between visible characters. */
const JOINING = /[\u200c\u200d\ufe00-\ufe0f]/;

function named(character: string): string {
  const code = character.codePointAt(0) as number;
  if (code > 0xe0000 && code <= 0xe007f) return `TAG ${String.fromCharCode(code - 0xe0000)}`;
  return NAMES[code] ?? `U+${code.toString(16).padStart(4, "0").toUpperCase()}`;
}

/** A text in which what cannot be seen is named. */
export function visible(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let plain = "";
  let before = "";
  for (const character of text) {
    const seen = !INVISIBLE.test(character) || character === "\n" || character === "\t";
    const joins = JOINING.test(character) && before !== "" && !INVISIBLE.test(before) && !/\s/.test(before);
    before = character;
    if (seen || joins) {
      plain += character;
      continue;
    }
    if (plain) parts.push(plain);
    plain = "";
    parts.push(<span class="chip hidden-character" title="a hidden character">{named(character)}</span>);
  }
  if (plain) parts.push(plain);
  return parts;
}

/** The beginning of a text, whole characters. */
export function excerpt(text: string, length: number): string {
  const points = Array.from(text);
  return points.length <= length ? text : `${points.slice(0, length).join("")}…`;
}

/** A short stored text in a line of ours: its direction stays its own. */
export function Inline({ text }: { text: string }) {
  return <bdi>{visible(text)}</bdi>;
}

/** A text with the spans of its signals marked. Spans are code points. */
export function Marked({ text, signals }: { text: string; signals: Signal[] }) {
  const parts = useMemo(() => marked(text, signals), [text, signals]);
  return <p class="stored" dir="auto">{parts}</p>;
}

function marked(text: string, signals: Signal[]): ComponentChildren[] {
  const points = Array.from(text);
  const cuts = new Set([0, points.length]);
  for (const { start, end } of signals) {
    cuts.add(Math.min(start, points.length));
    cuts.add(Math.min(end, points.length));
  }
  const edges = [...cuts].sort((a, b) => a - b);
  const reason = (from: number, to: number) => {
    const over = signals.filter((s) => s.start < to && s.end > from);
    return {
      why: [...new Set(over.map((s) => s.family.replaceAll("_", " ")))].sort().join(", "),
      critical: over.some((s) => s.severity === "critical"),
    };
  };
  return edges.slice(0, -1).map((from, index) => {
    const to = edges[index + 1] as number;
    const piece = visible(points.slice(from, to).join(""));
    const { why, critical } = reason(from, to);
    if (why === "") return <span key={from}>{piece}</span>;
    const after = edges[index + 2];
    const last = after === undefined || reason(to, after).why !== why;
    return (
      <mark key={from} class={critical ? "critical" : ""} title={why}>
        {piece}
        {last && <span class="why"> [{why}]</span>}
      </mark>
    );
  });
}

/** What the new text would change in the old one, word by word. */
export function Difference({ before, after }: { before: string; after: string }) {
  const parts = useMemo(
    () =>
      diffWordsWithSpace(before, after, { timeout: 200 }) ?? [
        { value: before, removed: true, added: false },
        { value: after, added: true, removed: false },
      ],
    [before, after],
  );
  return (
    <p class="stored" dir="auto">
      {parts.map((part, index) =>
        part.added ? (
          <ins key={index}>{visible(part.value)}</ins>
        ) : part.removed ? (
          <del key={index}>{visible(part.value)}</del>
        ) : (
          <span key={index}>{visible(part.value)}</span>
        ),
      )}
    </p>
  );
}
