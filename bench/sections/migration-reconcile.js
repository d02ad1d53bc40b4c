import { LOAD_CORE, startNode } from '../processes.js'
import { compareTurns } from '../turns.js'

const MIN_RATIO = 0.85

/** What it costs to reconcile an identity beside looking it up. */
export async function migrationReconcile(bench) {
  const core = startNode(LOAD_CORE, new URL('../fast-core.js', import.meta.url).pathname)
  try {
    const { url } = await core.answer()
    await compareTurns({
      title: 'an identity of a migration',
      program: 'reconciler.js',
      question: { build: bench.settings.build, url },
      labels: ['the same look-ups alone', 'reconciliation'],
      aim: MIN_RATIO,
    })
  } finally {
    await core.stop()
  }
}
