import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { channelsPage, eventsOf } from '../../site/reference/channels-page.js'
import { commandsIn, commandsPage } from '../../site/reference/commands-page.js'
import { entryPointsOf, exportsOf } from '../../site/reference/entry-points.js'
import { exportsPage } from '../../site/reference/exports-page.js'
import { INTRODUCTIONS } from '../../site/reference/introductions.js'
import { type Declaration, type ShownType, undocumented } from '../../site/reference/reflection.js'
import { shapeOf } from '../../site/reference/shape.js'
import { brokenSignature } from '../../site/reference/signature.js'
import { tidyPage } from '../../site/reference/tidy-page.js'
import { COMMANDS } from '../../src/cli/commands.js'
import { helpOn, helpOnAll } from '../../src/cli/frame/help.js'

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const entries = entryPointsOf(JSON.parse(await readFile(root('package.json'), 'utf8')))

const saying = (text: string) => ({ summary: [{ text }] })
const literal = (value: string): ShownType => ({ type: 'literal', toString: () => `"${value}"` })
const intrinsic = (name: string): ShownType => ({ type: 'intrinsic', toString: () => name })
const objectOf = (...children: Declaration[]): ShownType => ({
  type: 'reflection',
  declaration: { name: '__type', children },
  toString: () => 'object',
})

/** As `{ type: 'failed', reason: string } | { type: 'ended' }`, with a comment on each. */
const union = (...comments: readonly string[]): ShownType => ({
  type: 'union',
  types: [
    objectOf(
      { name: 'type', type: literal('failed') },
      { name: 'reason', type: intrinsic('string | number'), comment: saying('Why.') },
    ),
    objectOf({ name: 'type', type: literal('ended') }),
  ],
  elementSummaries: comments.map((text) => [{ text }]),
  toString: () => 'union',
})

describe('the entry points', () => {
  it('are those of package.json, each with its source, a page and an introduction', async () => {
    expect(entries.map(({ name }) => name)).toEqual([
      'express-service-auth',
      'express-service-auth/redis',
      'express-service-auth/postgres',
      'express-service-auth/otel',
      'express-service-auth/client',
      'express-service-auth/migration',
      'express-service-auth/testing',
    ])
    for (const { source, page } of entries) {
      expect(exportsOf(await readFile(root(source), 'utf8')), source).not.toEqual([])
      expect(INTRODUCTIONS).toHaveProperty([page])
    }
  })

  it('export every value that their modules have', async () => {
    for (const { source } of entries) {
      const names = exportsOf(await readFile(root(source), 'utf8'))
      const values = Object.keys(await import(root(source)))
      expect(names, source).toEqual(expect.arrayContaining(values))
    }
  })
})

it('reads the names of all forms of exports', () => {
  const index = "export { a, type B } from './a.js'\nexport type {\n  C,\n  D,\n} from './c.js'\n"
  expect(exportsOf(index)).toEqual(['a', 'B', 'C', 'D'])
})

describe('what has no doc comment', () => {
  const words = saying('Words.')

  it('is an export, a member of an export or a case of it', () => {
    const silent = { name: 'silent', type: intrinsic('string') }
    expect(undocumented([silent])).toEqual(['silent'])
    expect(undocumented([{ name: 'Options', comment: words, children: [silent] }])).toEqual([
      'Options.silent',
    ])
    expect(undocumented([{ name: 'Event', comment: words, type: union('Words.', '') }])).toEqual([
      'Event (case 2)',
    ])
    const both: ShownType = {
      type: 'intersection',
      types: [objectOf(silent), union('', 'Words.')],
      toString: () => 'both',
    }
    expect(undocumented([{ name: 'Event', comment: words, type: both }])).toEqual([
      'Event.silent',
      'Event (case 1)',
    ])
  })

  it('is nothing that tells a case, that every error has, or that another page tells', () => {
    const kind = { name: 'kind', type: literal('a') }
    const name = { name: 'name', type: intrinsic('string') }
    expect(undocumented([{ name: 'Fault', comment: words, children: [kind, name] }])).toEqual([])
    expect(undocumented([{ name: 'Other', variant: 'reference' }])).toEqual([])
    const spoken = { name: 'call', signatures: [{ name: 'call', comment: words }] }
    expect(undocumented([spoken])).toEqual([])
  })
})

describe('the cases of a type', () => {
  const linkTo = ({ name }: Declaration): string => `/reference/x#${name}`

  it('stand in a table, with what each of them means', () => {
    expect(shapeOf(union('It has failed.', 'It has ended.'), linkTo)).toBe(
      [
        '| case | meaning |',
        '| --- | --- |',
        "| `type`: `'failed'`<br>`reason`: `string \\| number` | It has failed. `reason`: Why. |",
        "| `type`: `'ended'` | It has ended. |",
      ].join('\n'),
    )
  })

  it('are left as they are where no comment says more', () => {
    const names: ShownType = {
      type: 'union',
      types: [literal('a'), literal('b')],
      toString: () => 'names',
    }
    expect(shapeOf(names, linkTo)).toBeUndefined()
    expect(shapeOf(intrinsic('string'), linkTo)).toBeUndefined()
  })
})

describe('a page', () => {
  const written = [
    '# redis',
    '## Interfaces',
    '### Made',
    'What is made.',
    '#### Extends',
    '- [`Base`](express-service-auth.md#base-1)',
    '#### Properties',
    '| Property | Type | Description |\n| ------ | ------ | ------ |\n| <a id="property-of-3"></a> `of?` | \\| `a` \\| [`Base`](express-service-auth.md#base-1) | Of what. |',
    '#### Methods',
    '##### $close()?',
    '```ts\noptional $close(after: number): void;\n```',
    '###### Parameters',
    '| Parameter | Type | Description |\n| ------ | ------ | ------ |\n| `after` | `number` | Milliseconds. |',
    '##### end()',
    '```ts\nend(how: How): void;\n```',
    'Ends it.',
    '###### Parameters',
    '| Parameter | Type |\n| ------ | ------ |\n| `how` | [`How`](#how) |',
    '###### Returns',
    '`void`',
    '***',
    '## Type Aliases',
    '### How',
    '```ts\ntype How = 1;\n```',
    'How it ends.',
    '#### Union Members',
    'noise',
    '##### Type Literal',
    'noise',
    '## Functions',
    '### make()',
    '```ts\nfunction make(): Made;\n```',
    'Makes it.',
    '#### Returns',
    '[`Made`](#made)',
    '#### Throws',
    'TypeError when it is wrong.',
  ].join('\n\n')
  const page = tidyPage(written, {
    title: 'express-service-auth/redis',
    introduction: 'For what.',
    shapes: new Map([['How', '| case | meaning |']]),
  })

  it('begins with what is imported, then functions, then what they take, then types', () => {
    expect(page).toMatch(/^# express-service-auth\/redis\n\nFor what\.\n\n## Functions\n/)
    expect([...page.matchAll(/^#+ .*$/gm)].map(([heading]) => heading)).toEqual([
      '# express-service-auth/redis',
      '## Functions',
      '### make() {#make}',
      '## Options and objects',
      '### Made {#Made}',
      '#### $close()? {#Made-$close}',
      '#### end() {#Made-end}',
      '## Types',
      '### How {#How}',
    ])
  })

  it('leads from name to name, and says what is thrown', () => {
    expect(page).toContain('See [`Made`](#Made).\n\n**Throws** TypeError when it is wrong.')
    expect(page).toContain('Ends it.\n\nSee [`How`](#How).')
    expect(page).toContain(
      '| <a id="Made-of"></a> `of?`<br>`a` \\| [`Base`](/reference/express-service-auth#Base) | Of what. |',
    )
  })

  it('has cases in the place of the type that has them, and no noise', () => {
    expect(page).toContain('### How {#How}\n\nHow it ends.\n\n| case | meaning |')
    expect(page).not.toMatch(/Union Members|noise|Extends|\*\*\*|type How/)
  })
})

describe('a signature', () => {
  it('stays in one line where that is short', () => {
    expect(brokenSignature('end(how: How): void;')).toBe('end(how: How): void;')
  })

  it('has a line for each parameter where it is long, however they are made', () => {
    const long =
      'function make<A extends [B, C]>(from: Record<string, number>, by: (one: A, two: B) => void, options?: Options): Made<A, B>;'
    expect(brokenSignature(long)).toBe(
      [
        'function make<A extends [B, C]>(',
        '  from: Record<string, number>,',
        '  by: (one: A, two: B) => void,',
        '  options?: Options,',
        '): Made<A, B>;',
      ].join('\n'),
    )
  })

  it('without parameters stays as it is', () => {
    const long = `all(): Promise<readonly { readonly name: string; readonly ${'x'.repeat(60)}: string }[]>;`
    expect(brokenSignature(long)).toBe(long)
  })
})

describe('the page of channels', () => {
  const told: Declaration = {
    name: 'KeyEvent',
    comment: saying('What is told on `express-service-auth:keys`.'),
  }
  const plain: Declaration = {
    name: 'StoreEvent',
    comment: saying('On the channel `express-service-auth:store`.'),
  }
  const events = eventsOf('redis', [told, plain, { name: 'Other', comment: saying('Words.') }])
  const page = channelsPage(events, new Map([['KeyEvent', '| case | meaning |']]))

  it('has what a comment names a channel of, with its cases or the way to its members', () => {
    expect(events.map(({ channel, name }) => [channel, name])).toEqual([
      ['keys', 'KeyEvent'],
      ['store', 'StoreEvent'],
    ])
    expect(page).toContain('| `express-service-auth:keys` | [`KeyEvent`](#KeyEvent) |')
    expect(page).toContain('## KeyEvent {#KeyEvent}')
    expect(page).toContain('| case | meaning |')
    expect(page).toContain('[`StoreEvent`](/reference/redis#StoreEvent)')
  })
})

it('takes the commands from the help, and shows that of each', () => {
  const whole = `${helpOnAll(COMMANDS).join('\n')}\n`
  expect(commandsIn(whole)).toEqual(COMMANDS.map(({ name }) => name))
  const helps = COMMANDS.map((one) => ({ command: one.name, text: helpOn(one).join('\n') }))
  const page = commandsPage([{ command: '', text: whole }, ...helps])
  for (const { command, text } of helps) {
    expect(page).toContain(`## service-auth ${command} {#${command}}`)
    expect(page).toContain(text)
  }
})

it('lists every export with the way to it', () => {
  const page = exportsPage([{ name: 'a/b', page: 'b', names: ['two', 'One'] }])
  expect(page).toContain('## [a/b](/reference/b) {#b}')
  expect(page).toContain('[`One`](/reference/b#One) · [`two`](/reference/b#two)')
})
