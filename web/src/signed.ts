/** Admin requests that are signed over exactly their address and body. */

import { ApiProblem, apiUrl, call, idempotencyKey, inWords } from "./api";
import { signedHeaders, type SigningKey } from "./sign";

/** A key that has its id; what cannot sign yet is null. */
export function readyToSign(key: SigningKey | null): SigningKey | null {
  return key?.keyId == null ? null : key;
}

export function signedCall<T>(key: SigningKey, path: string, value: object): Promise<T> {
  const body = JSON.stringify(value);
  return signedHeaders(key, apiUrl(path), body).then((headers) =>
    call<T>("POST", path, { body, headers: { ...headers, ...idempotencyKey() } }),
  );
}

/** What is refused was not done; what got no answer may have been. */
export function signedFailure(error: unknown): string {
  const words = inWords(error);
  return error instanceof ApiProblem ? words : `${words} It may have been done all the same: read the audit chain before you repeat it.`;
}
