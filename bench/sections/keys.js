import { measure, ratePerSecond, ratioOf } from '../measure.js'
import { count, goal, printTable, spread } from '../table.js'

const known = (pool) => ({ kind: 'read', pool, status: 200 })
const stranger = { kind: 'read', pool: 'strangers', status: 401 }

/** Reads with a known key while every other request carries a key id that nobody has heard of. */
export async function keys(bench) {
  const contender = (label, turns) => ({ label, app: 'read', turns })
  const measured = await measure(
    bench,
    [
      contender('few tokens', [known('few')]),
      contender('few tokens, flooded', [known('few'), stranger]),
      contender('every token new', [known('fresh')]),
      contender('every token new, flooded', [known('fresh'), stranger]),
    ],
    bench.timing,
  )
  const [few, fewFlooded, fresh, freshFlooded] = measured
  const row = (one) => [one.label, count(ratePerSecond(one)), '', '', '']
  const floodedRow = (one, base) => {
    const ratio = ratioOf(one, base)
    const figure = ratio.median.toFixed(2)
    return [one.label, count(ratePerSecond(one)), figure, spread(ratio), goal(ratio.median, 0.6)]
  }
  printTable(
    'Reads with a known key during a flood of random key ids, as many of each',
    ['', 'known-key requests/s', 'against without', 'spread', 'reached'],
    [row(few), floodedRow(fewFlooded, few), row(fresh), floodedRow(freshFlooded, fresh)],
  )
}
