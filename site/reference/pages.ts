import { execFile } from 'node:child_process'
import { access, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { MadePage } from '../make/made-page.js'
import { addressOf, channelsPage, eventsOf } from './channels-page.js'
import { commandsIn, commandsPage } from './commands-page.js'
import { type EntryPoint, entryPointsOf, exportsOf } from './entry-points.js'
import { exportsPage } from './exports-page.js'
import { INTRODUCTIONS } from './introductions.js'
import { type ReadSource, readSource } from './read-source.js'
import { type Declaration, undocumented } from './reflection.js'
import { shapeOf } from './shape.js'
import { tidyPage } from './tidy-page.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const GROUP = 'Reference'

/** An entry point with what typedoc has read of it. */
interface Read extends EntryPoint {
  readonly exported: readonly Declaration[]
}

/**
 * The pages of the reference, made of the source and of what the built command says of itself.
 *
 * @throws Error that names every export that has no doc comment or is on no page.
 */
export async function madePages(): Promise<readonly MadePage[]> {
  const manifest = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'))
  const entryPoints = entryPointsOf(manifest)
  const out = await mkdtemp(join(tmpdir(), 'reference-'))
  try {
    const source = await readSource(entryPoints, out)
    const entries = entryPoints.map((one) => ({ ...one, exported: exportedBy(source, one) }))
    await refuseGaps(entries)
    await source.application.generateOutputs(source.project)
    return [...(await pagesOf(entries, out)), await commands()]
  } finally {
    await rm(out, { recursive: true, force: true })
  }
}

const exportedBy = ({ project }: ReadSource, { page }: EntryPoint): readonly Declaration[] =>
  (project.children?.find(({ name }) => name === page)?.children ?? []) as readonly Declaration[]

async function refuseGaps(entries: readonly Read[]): Promise<void> {
  const gaps: string[] = []
  for (const { name, source, exported } of entries) {
    const known = new Set(exported.map((one) => one.name))
    const names = exportsOf(await readFile(`${ROOT}${source}`, 'utf8'))
    gaps.push(...names.filter((one) => !known.has(one)).map((one) => `${name}: ${one} is missing`))
    gaps.push(...undocumented(exported).map((one) => `${name}: ${one} has no doc comment`))
  }
  if (gaps.length > 0) throw new Error(`the reference has gaps:\n${gaps.join('\n')}`)
}

async function pagesOf(entries: readonly Read[], out: string): Promise<readonly MadePage[]> {
  const events = entries.flatMap(({ page, exported }) => eventsOf(page, exported))
  const eventNames = new Set(events.map(({ name }) => name))
  const shapes = new Map(entries.map((one) => [one.page, shapesOf(one)] as const))
  const shapesOfEvents = new Map(
    [...shapes.values()].flatMap((all) => [...all].filter(([name]) => eventNames.has(name))),
  )
  const pages = await Promise.all(
    entries.map(async ({ name, page }) => {
      const markdown = await readFile(join(out, `${page}.md`), 'utf8')
      const introduction = INTRODUCTIONS[page]
      if (introduction === undefined) throw new Error(`${name} has no introduction`)
      const shown = new Map(shapes.get(page))
      for (const event of shown.keys()) if (eventNames.has(event)) shown.set(event, casesAt(event))
      const text = tidyPage(markdown, { title: name, introduction, shapes: shown })
      return { path: `reference/${page}`, title: name, group: GROUP, text }
    }),
  )
  const names = entries.map((one) => ({ ...one, names: one.exported.map((each) => each.name) }))
  return [
    made('exports', 'Every export', exportsPage(names)),
    ...pages,
    made('channels', 'Channels and events', channelsPage(events, shapesOfEvents)),
  ]
}

const made = (page: string, title: string, text: string): MadePage => ({
  path: `reference/${page}`,
  title,
  group: GROUP,
  text,
})

const casesAt = (event: string): string => `Its cases: [channels and events](${addressOf(event)}).`

function shapesOf({ exported }: Read): ReadonlyMap<string, string> {
  const linkTo = ({ name, parent }: Declaration) => `/reference/${parent?.name}#${name}`
  return new Map(
    exported.flatMap(({ name, type }) => {
      const shape = shapeOf(type, linkTo)
      return shape === undefined ? [] : [[name, shape] as const]
    }),
  )
}

async function commands(): Promise<MadePage> {
  const program = `${ROOT}dist/cli/main.js`
  await access(program).catch(() => {
    throw new Error('there is no dist/cli/main.js: run npm run build first')
  })
  const helpOn = async (command: string) => {
    const given = [program, ...(command === '' ? [] : [command]), '--help']
    const { stdout } = await promisify(execFile)(process.execPath, given)
    return { command, text: stdout }
  }
  const whole = await helpOn('')
  const helps = await Promise.all(commandsIn(whole.text).map(helpOn))
  return made('commands', 'Commands', commandsPage([whole, ...helps]))
}
