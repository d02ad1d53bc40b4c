import { parseArgs } from 'node:util'
import { KINDS } from './kinds.js'
import { loadPackage, mutantOf, namesOf, type Package } from './load.js'
import { type Kind, search, type Told, tell } from './search.js'
import { shrink } from './shrink.js'
import { textOf } from './time-line.js'

/*
 * npm run simulate -- --stories 100000 [--of KIND] [--seed 1]
 * npm run simulate -- --mutants [--of KIND] [--only REGEXP] [--stories 20000]
 * Each kind (leased, coupled, migration) has its share of the stories, or one has all.
 */
const { values } = parseArgs({
  options: {
    of: { type: 'string' },
    stories: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    mutants: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
})
const stories = Number(values.stories)
const seed = Number(values.seed)
const kinds = Object.entries(KINDS).filter(([name]) => name === (values.of ?? name))
if (kinds.length === 0) throw new Error(`--of is one of ${Object.keys(KINDS).join(', ')}`)
const REPORT_EVERY = 5000

async function simulate(): Promise<boolean> {
  const esa = await loadPackage()
  for (const [name, kind] of kinds) {
    const share = values.of === undefined ? kind.share : 1
    if (!(await simulateKind(name, kind, Math.ceil(stories * share), esa))) return false
  }
  console.log('every promise was kept')
  return true
}

async function simulateKind(name: string, kind: Kind, count: number, esa: Package) {
  const startedAt = performance.now()
  const explained = new Map<string, number>()
  let told = 0
  const rate = (): string => {
    const seconds = (performance.now() - startedAt) / 1000
    return `${name}: ${told} stories, ${(told / seconds).toFixed(0)} a second`
  }
  const onTold = ({ explained: causes }: Told): void => {
    told += 1
    for (const cause of causes) explained.set(cause, (explained.get(cause) ?? 0) + 1)
    if (told % REPORT_EVERY === 0) console.log(rate())
  }
  const found = await search(kind, esa, { from: seed, count, onTold })
  console.log(rate())
  console.log(`doubles that their story explains: ${JSON.stringify(Object.fromEntries(explained))}`)
  if (found === undefined) return true
  const shortest = await shrink(kind, found.told.story, esa)
  console.log(
    `${name} seed ${found.seed} breaks a promise; its shortest form:\n${textOf(shortest)}`,
  )
  return false
}

async function findMutants(): Promise<boolean> {
  const sound = await loadPackage()
  const all = kinds.flatMap(([, kind]) => namesOf(kind.mutants).map((name) => ({ kind, name })))
  let isEachFound = true
  for (const { kind, name } of all.filter((each) => new RegExp(values.only).test(each.name))) {
    const mutant = await loadPackage(mutantOf(kind.mutants, name))
    let from = seed
    let found: Awaited<ReturnType<typeof search>>
    do {
      found = await search(kind, mutant, { from, count: seed + stories - from })
      from = (found?.seed ?? from) + 1
      // A story that the package itself does not keep says nothing of the mutant.
    } while (found !== undefined && (await tell(kind, found.told.story, sound)).broken.length > 0)
    isEachFound &&= found !== undefined
    console.log(
      `${found === undefined ? 'NOT FOUND' : `story ${found.seed}`}  ${name}: ${found?.told.broken[0] ?? ''}`,
    )
  }
  return isEachFound
}

process.exitCode = (await (values.mutants ? findMutants() : simulate())) ? 0 : 1
