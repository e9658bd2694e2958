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

export function AdminTab({ me }: { me: Me }) {
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
  return (
    <>
      <Fault why={failed.value} />
      {signing === null && (
        <p class="banner">
          {held.value === null
            ? "Nothing can be signed in this browser yet: make a key below and have it registered."
            : "Your key has no id yet: have another admin register it, then enter the id that they get."}
        </p>
      )}
      <div class="admin">
        <div class="sections">
          <PurgeCard signing={signing} people={people.value} />
          <DsarCard signing={signing} people={people.value} />
          <HoldsCard signing={signing} people={people.value} />
        </div>
        <div class="sections">
          <KeyCard me={me} held={held} />
          <RegisterCard signing={signing} people={people.value} />
        </div>
      </div>
    </>
  );
}
