// Loads packages that only some providers need. Skein does not install them.

import { AppError } from "../core/errors.ts";

/**
 * Returns the package that `load` imports. Throws `config_invalid` with the package's name if it is not
 * installed.
 */
export async function packageFor<T>(model: string, name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    const message = `\`${model}\` needs the package \`${name}\`, which is not installed. Run \`npm install ${name}\`.`;
    throw new AppError("config_invalid", message, { cause: error });
  }
}

const isMissing = (error: unknown, name: string) =>
  error instanceof Error &&
  "code" in error &&
  error.code === "ERR_MODULE_NOT_FOUND" &&
  error.message.includes(`'${name}'`);
