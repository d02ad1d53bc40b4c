import DefaultTheme from 'vitepress/theme-without-fonts'
// biome-ignore lint/correctness/useImportExtensions: it is a component
import BarChart from './BarChart.vue'
// biome-ignore lint/correctness/useImportExtensions: it is a style sheet
import './site.css'

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => app.component('BarChart', BarChart),
}
