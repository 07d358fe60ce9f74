// The port to the keys that protect the vault.

/** Encrypts the data keys of secrets, for example with a key management service. */
export interface KeyWrapper {
  /**
   * The name of the key that `wrap` uses: 1 to 64 characters of `A-Z a-z 0-9 _ -`. A new key has a new id. The store keeps
   * the id with each secret.
   */
  readonly id: string;
  /**
   * Encrypts a data key of 32 bytes. `context` is a string of at most 2 KB that is also passed to `unwrap`. Key management
   * services call it "encryption context" or "additional authenticated data".
   */
  wrap(key: Uint8Array, context: string): Promise<string>;
  /** Decrypts a key that `wrap` encrypted. Throws if the key or the context differs. */
  unwrap(wrapped: string, context: string): Promise<Uint8Array>;
}
