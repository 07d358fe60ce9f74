// Where this package lies, from src/ and from dist/ alike: for the files that are shipped beside the code.

export const packageRoot = new URL("../../", import.meta.url);
