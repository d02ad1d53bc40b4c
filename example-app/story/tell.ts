import type { Outcome, Step } from './step.js'
import type { Terminal } from './terminal.js'

/** Plays the steps one after the other and shows each; tells whether all went as told. */
export async function tell(
  steps: readonly Step[],
  terminal: Terminal,
  play: (step: Step) => Promise<Outcome>,
): Promise<boolean> {
  let asTold = 0
  terminal.header()
  for (const step of steps) {
    const outcome = await play(step)
    terminal.row(step, outcome)
    if (outcome.faults.length === 0) asTold += 1
  }
  terminal.line()
  terminal.heading(`${asTold} of ${steps.length} steps went as told`)
  return asTold === steps.length
}
