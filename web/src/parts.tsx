/** Small parts that several tabs use. */

import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

import { inWords } from "./api";
import { left, urgency } from "./time";
import type { Scores, Screen } from "./types";

export function Countdown({ until, warn, critical }: { until: string; warn: number; critical: number }) {
  const how = urgency(until, warn, critical);
  return (
    <span class={`chip countdown ${how}`} title={`decide before ${new Date(until).toLocaleString()}`}>
      {left(until)}
    </span>
  );
}

export function VerdictChip({ screen }: { screen: Screen }) {
  const words = { clean: "clean", quarantine: "held by the screen", reject: "refused by the screen" };
  return <span class={`chip verdict ${screen.verdict}`}>{words[screen.verdict]}</span>;
}

export function ScreenWords({ screen }: { screen: Screen }) {
  const families = [...new Set(screen.signals.map((s) => s.family.replaceAll("_", " ")))];
  const learned = screen.layer2;
  const parts = families.map((f) => `rules: ${f}`);
  if (learned?.reason) parts.push(learned.reason.replaceAll("_", " "));
  else if (learned !== undefined && learned.verdict !== "clean") {
    parts.push(`learned screen: ${Math.round((learned.score ?? 0) * 100)} % likely an attack`);
  }
  return <p class="muted">{parts.length ? parts.join(" · ") : "Nothing suspicious was found."}</p>;
}

function Score({ name, value, why }: { name: string; value: number; why: string }) {
  return (
    <div class="score">
      <span class="score-name">{name}</span>
      <meter min={0} max={1} value={value} aria-label={name} />
      <span class="score-value">{value.toFixed(2)}</span>
      <span class="muted">{why}</span>
    </div>
  );
}

export function ScoreBars({ scores }: { scores: Scores }) {
  const { novelty, salience, confidence } = scores;
  const novel = novelty.exact_duplicate
    ? "an exact duplicate of a live memory"
    : novelty.nearest_cosine === null
      ? "the first memory of its kind"
      : `the nearest memory is ${Math.round(novelty.nearest_cosine * 100)} % alike`;
  const salient = `${salience.characters} characters (${salience.band}), ${salience.entity_count} entities named`;
  const sure = confidence.factors.map((f) => f.reason).join(" ") || "stated, no reason to doubt";
  return (
    <section aria-label="Scores" class="scores">
      <Score name="Novelty" value={novelty.value} why={novel} />
      <Score name="Salience" value={salience.value} why={salient} />
      <Score name="Confidence" value={confidence.value} why={sure} />
    </section>
  );
}

/** A tab that lists what one call answers. */
export function Loaded<T>({
  load, children, again,
}: { load: () => Promise<T>; children: (value: T, reload: () => void) => ComponentChildren; again?: unknown }) {
  const [value, setValue] = useState<T | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const reload = () => {
    load().then(
      (found) => { setValue(found); setFailed(null); },
      (error: unknown) => setFailed(inWords(error)),
    );
  };
  useEffect(reload, [again]);
  if (failed !== null) {
    return (
      <div class="state" role="alert">
        <h2>This could not be loaded</h2>
        <p>{failed}</p>
        <button type="button" onClick={reload}>Try again</button>
      </div>
    );
  }
  if (value === null) return <div class="state" aria-busy="true"><p>Loading…</p></div>;
  return <>{children(value, reload)}</>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="state"><h2>{title}</h2><p class="muted">{children}</p></div>;
}
