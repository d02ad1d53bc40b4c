import type { Outcome, Step } from './step.js'
import type { Terminal } from './terminal.js'

/** Plays the steps one after the other and shows each; returns whether all went as expected. */
export async function playSteps(
  steps: readonly Step[],
  terminal: Terminal,
  play: (step: Step) => Promise<Outcome>,
): Promise<boolean> {
  let asExpected = 0
  terminal.header()
  for (const step of steps) {
    const outcome = await play(step)
    terminal.row(step, outcome)
    if (outcome.faults.length === 0) asExpected += 1
  }
  terminal.line()
  terminal.heading(`${asExpected} of ${steps.length} steps went as expected`)
  return asExpected === steps.length
}
