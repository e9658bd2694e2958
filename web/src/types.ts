/** The shapes of the API that the page reads. */

export type Verdict = "clean" | "quarantine" | "reject";

export interface Signal {
  field: string;
  family: string;
  rule: string;
  severity: string;
  start: number;
  end: number;
  view: string;
}

export interface Screen {
  verdict: Verdict;
  signals: Signal[];
  layer2?: { verdict: Verdict; score?: number; reason?: string };
}

export interface Scores {
  novelty: { value: number; nearest_memory_id: string | null; nearest_cosine: number | null; exact_duplicate: boolean };
  salience: { value: number; band: string; characters: number; entity_count: number };
  confidence: { value: number; factors: { name: string; multiplier: number; reason: string }[] };
  conflict: { reason: string; explanation: string } | null;
}

export interface Memory {
  memory_id: string;
  version: number;
  text: string;
  title: string | null;
  author: string | null;
  observed_at: string | null;
  created_at: string;
}

export interface Relation {
  subject: string;
  predicate: string;
  object?: string | null;
  value?: { type: string; value: string | number | boolean; unit?: string | null } | null;
  polarity: string;
  valid_from?: string | null;
  valid_to?: string | null;
}

export interface Proposal {
  proposal_id: string;
  status: "pending" | "approved" | "rejected" | "expired";
  title: string | null;
  content: string;
  kind: string;
  domain: string | null;
  author: string | null;
  source: string;
  assertion_kind: string;
  observed_at: string | null;
  valid_from: string | null;
  valid_to: string | null;
  memory_expires_at: string | null;
  source_uri: string | null;
  revision: string | null;
  data_subjects: string[];
  entities: { name: string; kind: string; aliases?: string[] }[];
  relations: Relation[];
  source_prompt: string | null;
  source_prompt_verdict: Verdict | null;
  pii: boolean;
  masked: boolean;
  screen: Screen;
  scores: Scores;
  conflict: (Memory & { scored_version: number; live: boolean }) | null;
  content_digest: string;
  submitted_by: { principal_id: string; name: string; kind: string };
  created_at: string;
  expires_at: string;
  warn_secs: number;
  critical_secs: number;
  edited_at: string | null;
  decided_at: string | null;
  decided_by: string | null;
  decision: { reason?: string | null; override_reason?: string | null; supersedes?: string | null } | null;
  memory_id: string | null;
}

export interface Held {
  memory_id: string;
  held_for: string[];
  space: "team_shared" | "private";
  created_at: string;
  source: string;
  masked: boolean;
  title?: string | null;
  content?: string;
  kind?: string;
  domain?: string;
  author?: string | null;
  source_uri?: string | null;
  revision?: string | null;
  heading_path?: string | null;
  data_subjects?: string[];
  /** Names and texts of what its sender claimed of it. */
  claims?: string[];
  observed_at?: string | null;
  valid_from?: string | null;
  valid_to?: string | null;
  graph?: { entities: { name: string; kind: string; aliases?: string[] }[]; relations: Relation[] } | null;
  screen?: Screen;
  content_digest?: string;
}

export interface ConflictRow {
  conflict_id: string;
  reason: string;
  explanation: string;
  opened_at: string;
  sides: Memory[];
}

export interface AuditEvent {
  seq: number;
  at: string;
  actor: string | null;
  actor_name: string | null;
  actor_kind: string;
  action: string;
  target: string | null;
  detail: Record<string, unknown>;
  hash: string;
}

export interface Chain {
  ok: boolean;
  events: number;
  head: string;
  faults: { kind: string; seq: number; until: number | null }[];
}

export interface Statistics {
  days: number;
  decisions: number;
  approve_rate: number | null;
  edit_rate: number | null;
  override_rate: number | null;
  median_seconds_to_decide: number | null;
  warning: string | null;
}

export interface Me {
  principal_id: string;
  kind: string;
  scopes: string[];
  capabilities: string[];
}

export interface Problem {
  title: string;
  status: number;
  code: string;
  retryable: boolean;
  errors: { pointer: string; code: string; detail: string }[];
  correlation_id: string;
  outcome?: { status?: string; decided_by?: string | null };
}

export interface RowOutcome {
  proposal_id: string;
  outcome: "done" | "failed" | "not_attempted";
  code?: string;
  errors?: { detail: string }[];
  winner?: { decided_by?: string | null; status?: string };
}

/** More rows than one transaction takes are erased by a job. */
export interface PurgeJob {
  job_id: string;
  memories: number;
  proposals: number;
}

export interface ErasureJob {
  status: "working" | "done" | "failed";
  failure: string | null;
  done: number;
  total: number | null;
  result: { erased?: { memories: number; proposals: number }; held?: { total: number } } | null;
}

export interface Purge {
  dry_run: boolean;
  erased: string[];
  held: string[];
  not_found: string[];
  counts: Record<string, number>;
  tombstones?: string[];
  remains?: string;
}

export interface LegalHold {
  hold_id: string;
  of: "memory_ids" | "data_subject";
  memory_ids: string[];
  reason: string;
  case_reference: string;
  placed_at: string;
  placed_by: string;
  released_at: string | null;
  released_by: string | null;
  release_reason: string | null;
}

export interface Located {
  memories: number;
  proposals: number;
  imports: number;
  submissions: number;
}

export interface Dsar {
  dsar_id: string;
  action: "register" | "export" | "purge" | "both" | "refuse";
  status: "open" | "working" | "done" | "failed" | "refused";
  law: string;
  case_reference: string | null;
  reason: string | null;
  received_at: string;
  deadline: string;
  overdue: boolean;
  closed_at: string | null;
  located: Located;
  certificate: boolean;
}

export interface DsarDetail extends Dsar {
  /** Good for five minutes, for whoever asked for the bundle alone. */
  link: string | null;
}

export interface Certificate {
  certificate: {
    completed_at: string;
    in_time: boolean;
    erased: { memories: number; proposals: number; imports?: number; submissions?: number } | null;
    held: { total?: number } | null;
    tombstones: { count: number; root: string };
    remains: string[];
  };
  digest: string;
  checks: Record<string, boolean>;
  valid: boolean;
}

export interface DecayRow {
  memory_id: string;
  version: number;
  space: string;
  kind: string;
  created_at: string;
  expiry: string;
  retention_reason: "per_chunk" | "kind_policy";
}

export interface DecayReport {
  report_id: string;
  at: string;
  until: string;
  retention: Record<string, number>;
  counts: { decayed: Record<string, number>; expiring: Record<string, number> };
  by_kind: Record<string, { decayed?: number; expiring?: number }>;
  decayed: DecayRow[];
  expiring: DecayRow[];
  page: string | null;
}

export interface Principal {
  principal_id: string;
  kind: string;
  name: string;
  capabilities: string[];
  active: boolean;
  key_ids: string[];
}
