import { brokenSignature } from './signature.js'

/** What a page is to become. */
export interface PagePlan {
  /** What is imported: the title. */
  readonly title: string
  /** What stands below the title. */
  readonly introduction: string
  /** By the name of an export: what stands in the place of its type. */
  readonly shapes: ReadonlyMap<string, string>
}

/** What typedoc calls a kind of exports, and what a reader looks for. */
const GROUPS: Readonly<Record<string, string>> = {
  Functions: 'Functions',
  Classes: 'Errors',
  Interfaces: 'Options and objects',
  'Type Aliases': 'Types',
  References: 'Exported here too',
}

/** Of use to somebody who extends a class, and nobody else; or told by the type or its cases already. */
const LEFT_OUT =
  /^(?:Extends|Extended by|Overrides|Inherited from|Implementation of|Union Members|Type Declaration|Type Literal|Function)$/
/** What they hold says enough. */
const WITHOUT_HEADING = /^(?:Properties|Methods|Constructors|Accessors|Get Signature)$/
const OF_TYPES = /^(?:Parameters|Returns|Type Parameters)$/

/** The page of an entry point as a person reads it, made of the one that typedoc has written. */
export function tidyPage(markdown: string, { title, introduction, shapes }: PagePlan): string {
  const groups = markdown
    .split(/^## /m)
    .slice(1)
    .map((group) => tidyGroup(group, shapes))
    .sort((one, other) => one.place - other.place)
  const text = [`# ${title}`, introduction, ...groups.map((group) => group.text)].join('\n\n')
  return `${text.replaceAll(/\n{3,}/g, '\n\n').trim()}\n`
}

function tidyGroup(group: string, shapes: PagePlan['shapes']) {
  const [head = '', ...sections] = group.split(/^### /m)
  const kind = head.trim()
  const exports = sections.map((section) => tidyExport(section, shapes)).sort(byName)
  const texts = exports.map(({ text }) => text)
  return {
    place: Object.keys(GROUPS).indexOf(kind),
    text: [`## ${GROUPS[kind] ?? kind}`, ...texts].join('\n\n'),
  }
}

interface Named {
  readonly name: string
}

const byName = (one: Named, other: Named): number =>
  one.name.toLowerCase() < other.name.toLowerCase() ? -1 : 1

function tidyExport(section: string, shapes: PagePlan['shapes']) {
  const [heading = '', ...lines] = section.replaceAll(/^\*\*\*$/gm, '').split('\n')
  const name = heading.replace(/\(\)$|\\?<.*$/g, '')
  const body = withAnchors(name, tidyParts(lines.join('\n')))
  const shape = shapes.get(name)
  const shown = shape === undefined ? body : `${withoutCode(body)}\n\n${shape}`
  const linked = withLinks(shown).replaceAll(`See [\`${name}\`](#${name}).\n\n`, '')
  return { name, text: `### ${heading} {#${name}}\n\n${linked.trim()}` }
}

/** Cases in tables say all that the type says. */
const withoutCode = (body: string): string => body.replace(/^```ts\n.*?^```$/ms, '').trim()

/** A column more would stand beside a small screen. */
const PROPERTIES = /^\| Property \| Type \| Description \|\n\| [ |-]+ \|/gm
const PROPERTY = /^(\| (?:<a [^>]*><\/a> )?`[^`]+`) \| (.+?(?<!\\)) \|/gm

/** Members are found by the name of what they are members of: `ServiceAuth-ready`. */
const withAnchors = (owner: string, body: string): string =>
  body
    // A list of one or more, whose rest typedoc writes as one member.
    .replaceAll(/readonly \[(\w+), \1\]/g, 'readonly [$1, ...$1[]]')
    .replaceAll(
      /^#{4,} ([\w$]+)(\(\))?(\??)$/gm,
      (_, name, call = '', mark) => `#### ${name}${call}${mark} {#${owner}-${name}}`,
    )
    .replaceAll(`{#${owner}-Constructor}`, `{#${owner}-constructor}`)
    .replaceAll(
      /<a id="[^"]*"><\/a> `([\w$]+)(\??)`/g,
      (_, name, mark) => `<a id="${owner}-${name}"></a> \`${name}${mark}\``,
    )
    .replaceAll(/^#{4,} Call Signature\n/gm, '')
    // A union that stands in several lines begins with a bar.
    .replaceAll('| \\| ', '| ')
    .replaceAll(/^\| <a [^|]*`name` \| `"\w+"` \|.*\n/gm, '')
    .replaceAll(PROPERTIES, '| member | meaning |\n| --- | --- |')
    .replaceAll(PROPERTY, '$1<br>$2 |')
    .replaceAll(/^(?:function |new )?\w+[<(].*;$/gm, brokenSignature)

/** An export is found by its name: functions and types differ in the first letter alone. */
const withLinks = (text: string): string =>
  text.replaceAll(/\[`?([\w$]+)`?\]\(([\w/-]*)(?:\.md)?#[^)]*\)/g, (_, name, page) => {
    const address = page === '' || page.startsWith('/') ? page : `/reference/${page}`
    return `[\`${name}\`](${address}#${name})`
  })

/** Drops parts that say nothing, and puts the types of parameters and results in a line. */
function tidyParts(body: string): string {
  const [lead = '', ...parts] = body.split(/^(?=#{4,} )/m)
  const kept: string[] = [lead]
  let seen = new Set<string>()
  for (const part of parts) {
    const [, title = ''] = /^#+ (.*)$/m.exec(part) ?? []
    if (LEFT_OUT.test(title)) continue
    if (isOfTypesAlone(title, part)) {
      for (const link of linksIn(part)) seen.add(link)
      continue
    }
    kept.push(seeAlso(seen), withTitle(title, part))
    seen = new Set()
  }
  return [...kept, seeAlso(seen)].join('')
}

function withTitle(title: string, part: string): string {
  if (title === 'Throws') return `**Throws** ${bodyOf(part)}\n\n`
  if (OF_TYPES.test(title)) return `**${title}**\n\n${bodyOf(part)}\n\n`
  return WITHOUT_HEADING.test(title) ? `${bodyOf(part)}\n\n` : part
}

const bodyOf = (part: string): string => part.slice(part.indexOf('\n')).trim()

/** The signature above says the same; a table with a third column says more. */
const isOfTypesAlone = (title: string, part: string): boolean =>
  OF_TYPES.test(title) &&
  !part.includes('| Description |') &&
  !/\n\n[A-Z]/.test(`\n\n${bodyOf(part)}`)

const linksIn = (part: string): readonly string[] =>
  [...part.matchAll(/\[`[^`]+`\]\([^)]+\)/g)].map(([link]) => link)

const seeAlso = (links: ReadonlySet<string>): string =>
  links.size === 0 ? '' : `See ${[...links].join(', ')}.\n\n`
