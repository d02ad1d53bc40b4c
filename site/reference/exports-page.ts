import type { EntryPoint } from './entry-points.js'

/** An entry point and the names that it exports. */
export interface Exported extends Pick<EntryPoint, 'name' | 'page'> {
  readonly names: readonly string[]
}

/** Every export by its name, below what is imported. */
export function exportsPage(entries: readonly Exported[]): string {
  const parts = entries.map(({ name, page, names }) => {
    const links = [...names].sort(byName).map((one) => `[\`${one}\`](/reference/${page}#${one})`)
    return `## [${name}](/reference/${page}) {#${page}}\n\n${links.join(' · ')}`
  })
  return `${['# Every export', INTRODUCTION, ...parts].join('\n\n')}\n`
}

const INTRODUCTION =
  'Made from the doc comments of the source: what each thing takes, with ranges and defaults, what it ' +
  'returns and what it throws.'

const byName = (one: string, other: string): number =>
  one.toLowerCase() < other.toLowerCase() ? -1 : 1
