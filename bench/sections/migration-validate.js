import { compareTurns } from '../turns.js'

const MIN_RATIO = 0.3

/** What the validation of a record costs beside reading it. */
export async function migrationValidate(bench) {
  await compareTurns({
    title: 'a record of a migration',
    program: 'validator.js',
    question: { build: bench.settings.build },
    labels: ['JSON.parse', 'JSON.parse and validateUser'],
    aim: MIN_RATIO,
  })
}
