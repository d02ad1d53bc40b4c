import { type Colour, createPrinter } from './printer.js'
import type { Outcome, Step } from './step.js'

export interface Terminal {
  heading(text: string): void
  header(): void
  row(step: Step, outcome: Outcome): void
  line(text?: string): void
}

/** Prints the story as aligned columns, coloured where the terminal can and nobody objects. */
export function createTerminal(steps: readonly Step[]): Terminal {
  const { heading, line, paint } = createPrinter()
  const titleWidth = widest(['step', ...steps.map(({ title }) => title)])
  const requestWidth = widest(['request', ...steps.map(({ request }) => request)])
  const columns = (title: string, request: string) =>
    `${title.padEnd(titleWidth)}  ${request.padEnd(requestWidth)}`

  return {
    line,
    heading,
    header: () => line(paint('dim', `    ${columns('step', 'request')}  status  the operator saw`)),
    row({ title, request }, { status, seen, faults }) {
      const verdict = faults.length === 0 ? paint('green', 'ok') : paint('red', 'NO')
      const shown = paint(colourOf(status), String(status ?? '---').padEnd('status'.length))
      line(`${verdict}  ${columns(title, request)}  ${shown}  ${paint('dim', seen)}`)
      for (const fault of faults) line(paint('red', `    NOT AS EXPECTED: ${fault}`))
    },
  }
}

function colourOf(status: number | undefined): Colour {
  if (status === undefined || status >= 500) return 'magenta'
  return status < 400 ? 'green' : 'yellow'
}

function widest(texts: readonly string[]): number {
  return Math.max(...texts.map((text) => text.length))
}
