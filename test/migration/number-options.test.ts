import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { CLIENT_NUMBERS } from '../../src/migration/core/open-core-client.js'
import { MIGRATION_NUMBERS } from '../../src/migration/run/migration.js'

const textOf = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

const manual = textOf('docs/migration.md')

/** As comments and documents write it: with commas from 10,000 on. */
const written = (number: number): string =>
  number < 10_000 ? String(number) : number.toLocaleString('en-US')

const options = [
  ['src/migration/run/migration.ts', MIGRATION_NUMBERS],
  ['src/migration/core/open-core-client.ts', CLIENT_NUMBERS],
] as const

it.each(
  options.flatMap(([path, numbers]) =>
    Object.entries(numbers).map(([name, range]) => ({ name, path, ...range })),
  ),
)('the comment on $name has its range and its default', (option) => {
  const { name, path, min, max } = option
  const before = textOf(path).split(`  readonly ${name}?: number`)[0] ?? ''
  const comment = before.slice(before.lastIndexOf('/**'))
  expect(comment).toContain(`${written(min)} to ${written(max)}`)
  expect(comment).toMatch(new RegExp(`Default:? ${written(option.default)}\\.`))
})

it.each(Object.entries(MIGRATION_NUMBERS))('the manual has the range of %s', (name, range) => {
  const row = manual.split('\n').find((line) => line.startsWith(`| \`${name}\` |`))
  expect(row).toContain(`| ${range.default} |`)
  expect(row).toContain(`${written(range.min)} to ${written(range.max)}`)
})
