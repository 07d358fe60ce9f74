// VitePress's own theme, and diagrams drawn in the reader's browser from the text that a forge draws itself.

import { type Theme, useData } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { defineComponent, h, onMounted, ref, watch } from "vue";
import { loadMermaid } from "./mermaid.ts";
import "./style.css";

const Mermaid = defineComponent({
  props: { code: { type: String, required: true } },
  setup({ code }) {
    const svg = ref("");
    // biome-ignore lint/correctness/useHookAtTopLevel: a setup function of Vue is no hook of React
    const { isDark } = useData();
    const draw = async () => {
      const mermaid = await loadMermaid();
      mermaid.initialize({ startOnLoad: false, theme: isDark.value ? "dark" : "neutral" });
      svg.value = (
        await mermaid.render(`diagram-${Math.random().toString(36).slice(2)}`, decodeURIComponent(code))
      ).svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () => h("div", { class: "diagram", innerHTML: svg.value });
  },
});

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => void app.component("Mermaid", Mermaid),
} satisfies Theme;
