import DefaultTheme from 'vitepress/theme-without-fonts'
// biome-ignore lint/correctness/useImportExtensions: it is a style sheet
import './site.css'

export default DefaultTheme
