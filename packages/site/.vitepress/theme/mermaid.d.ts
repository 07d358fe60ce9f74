// What the theme calls of a package that brings no declarations.

declare module "@mermaid-js/tiny" {
  const mermaid: {
    initialize(options: { startOnLoad: boolean; theme: "dark" | "neutral" }): void;
    render(id: string, code: string): Promise<{ svg: string }>;
  };
  export default mermaid;
}
