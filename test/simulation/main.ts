import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { coverage, loadPackage } from './load.js'
import { MUTANTS } from './mutants.js'
import { search, type Told, tell } from './search.js'
import { shrink } from './shrink.js'
import { drawStory } from './story.js'
import { svgOf, textOf } from './time-line.js'

/*
 * npm run simulate -- --stories 100000 [--seed 1] [--processes 2] [--coverage] [--svg FILE]
 * npm run simulate -- --mutants [--only REGEXP] [--stories 20000] [--processes 2]
 */
const { values } = parseArgs({
  options: {
    stories: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    mutants: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    coverage: { type: 'boolean', default: false },
    svg: { type: 'string' },
    processes: { type: 'string', default: '1' },
    /** Which of the processes this is, from 0. */
    part: { type: 'string' },
  },
})
const processes = Number(values.processes)
const part = Number(values.part ?? 0)
const all = Number(values.stories)
const count = values.mutants ? all : Math.ceil(all / processes)
const from = Number(values.seed) + (values.mutants ? 0 : part * count)
const REPORT_EVERY = 5000

async function simulate(): Promise<boolean> {
  const esa = await loadPackage()
  const startedAt = performance.now()
  const explained = new Map<string, number>()
  let told = 0
  let events = 0
  const onTold = ({ world, explained: causes }: Told): void => {
    told += 1
    events += world.stage.simulation.events
    for (const cause of causes) explained.set(cause, (explained.get(cause) ?? 0) + 1)
    if (told % REPORT_EVERY === 0) console.log(rateOf(told, startedAt))
  }
  const found = await search(esa, { from, count, onTold })
  console.log(`${rateOf(told, startedAt)}, ${Math.round(events / told)} events each`)
  console.log(`doubles that their story explains: ${JSON.stringify(Object.fromEntries(explained))}`)
  if (values.coverage) console.log(coverage.text())
  if (found === undefined) {
    console.log('every promise was kept')
    return true
  }
  const shortest = await shrink(found.told.world.stage.story, esa)
  console.log(`seed ${found.seed} breaks a promise; its shortest form:\n${textOf(shortest)}`)
  if (values.svg !== undefined) writeFileSync(values.svg, svgOf(shortest))
  return false
}

function rateOf(told: number, startedAt: number): string {
  const seconds = (performance.now() - startedAt) / 1000
  return `${told} stories, ${(told / seconds).toFixed(0)} a second`
}

async function findMutants(): Promise<boolean> {
  const sound = await loadPackage()
  let isEachFound = true
  const named = Object.entries(MUTANTS).filter(([name]) => new RegExp(values.only).test(name))
  for (const [name, mutations] of named.filter((_, index) => index % processes === part)) {
    const mutant = await loadPackage(mutations)
    let found = await search(mutant, { from, count })
    // A story that the package itself does not keep says nothing of the mutant.
    while (found !== undefined && (await tell(drawStory(found.seed), sound)).broken.length > 0) {
      const next = found.seed + 1
      found = await search(mutant, { from: next, count: from + count - next })
    }
    isEachFound &&= found !== undefined
    console.log(
      `${found === undefined ? 'NOT FOUND' : `story ${found.seed}`}  ${name}: ${found?.told.broken[0] ?? ''}`,
    )
  }
  return isEachFound
}

/** Each process tells its part. */
async function divide(): Promise<boolean> {
  const codes = Array.from({ length: processes }, async (_, index) => {
    const own = [...process.argv.slice(1), '--part', String(index)]
    const child = spawn(process.execPath, [...process.execArgv, ...own], { stdio: 'inherit' })
    const [code] = await once(child, 'exit')
    return code === 0
  })
  return (await Promise.all(codes)).every(Boolean)
}

const isPart = processes === 1 || values.part !== undefined
const work = values.mutants ? findMutants : simulate
process.exitCode = (await (isPart ? work() : divide())) ? 0 : 1
