/** Asks again as soon as anything has happened: for moments that pass too soon for `expect.poll`. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}
