/** Administration: erasure, legal holds, requests of data subjects, signing keys. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { call, inWords } from "./api";
import { DsarCard } from "./dsar";
import { HoldsCard } from "./holds";
import { PurgeCard } from "./purge";
import { Fault } from "./request";
import { signingKey, type SigningKey } from "./sign";
import { readyToSign } from "./signed";
import { KeyCard, RegisterCard } from "./signing";
import type { Me, Principal } from "./types";

const PARTS = { erase: "Erase", subjects: "Data subjects", holds: "Legal holds", keys: "Signing keys" };

export function AdminTab({ me, part }: { me: Me; part: string | undefined }) {
  const held = useSignal<SigningKey | null>(null);
  const people = useSignal<Principal[]>([]);
  const failed = useSignal<string | null>(null);
  useEffect(() => {
    signingKey(me.principal_id).then(
      (found) => (held.value = found),
      () => (failed.value = "This browser keeps no keys here (a private window, perhaps): nothing can be signed."),
    );
    call<{ principals: Principal[] }>("GET", "/principals").then(
      (found) => (people.value = found.principals),
      (error: unknown) => (failed.value = inWords(error)),
    );
  }, []);
  const signing = readyToSign(held.value);
  const shown = part !== undefined && part in PARTS ? part : "erase";
  return (
    <>
      <Fault why={failed.value} />
      <nav class="segments" aria-label="Administration">
        {Object.entries(PARTS).map(([key, name]) => (
          <a key={key} href={`#/admin/${key}`} aria-current={key === shown ? "page" : undefined}>{name}</a>
        ))}
      </nav>
      <div class="admin">
        {signing === null && shown !== "keys" && (
          <p class="banner">
            <span>Nothing can be signed in this browser yet. <a href="#/admin/keys">Make a key and have it registered.</a></span>
          </p>
        )}
        {shown === "erase" && <PurgeCard signing={signing} people={people.value} />}
        {shown === "subjects" && <DsarCard signing={signing} people={people.value} />}
        {shown === "holds" && <HoldsCard signing={signing} people={people.value} />}
        {shown === "keys" && <KeyCard me={me} held={held} />}
        {shown === "keys" && <RegisterCard signing={signing} people={people.value} />}
      </div>
    </>
  );
}
