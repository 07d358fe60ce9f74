// What the theme calls of a package that brings no declarations.

interface Mermaid {
  initialize(options: { startOnLoad: boolean; theme: "dark" | "neutral" }): void;
  render(id: string, code: string): Promise<{ svg: string }>;
}

declare var mermaid: Mermaid | undefined;

declare module "@mermaid-js/tiny?url" {
  const url: string;
  export default url;
}

declare module "*.css";
