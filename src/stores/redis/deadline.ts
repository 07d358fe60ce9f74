// Waiting that ends.

/** What `work` resolves with, unless it takes longer: then throws, and `work` goes on by itself. */
export function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => reject(new Error(`There was no answer within ${Math.round(ms)} ms.`)), ms);
  work.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}
