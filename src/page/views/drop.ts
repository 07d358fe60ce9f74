// Accepts files dropped anywhere on a conversation.

export const dropInto = (add: (files: readonly File[]) => Promise<void>) => ({
  onDragOver: (event: DragEvent) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  },
  onDrop: (event: DragEvent) => {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void add(files);
  },
});
