import { styleText } from 'node:util'
import type { Outcome, Step } from './step.js'

type Colour = Parameters<typeof styleText>[0]

export interface Terminal {
  heading(text: string): void
  header(): void
  row(step: Step, outcome: Outcome): void
  line(text?: string): void
}

/** Prints the story as aligned columns, coloured where the terminal can and nobody objects. */
export function createTerminal(steps: readonly Step[]): Terminal {
  const isColoured = process.stdout.isTTY === true && !process.env['NO_COLOR']
  const paint = (colour: Colour, text: string) => (isColoured ? styleText(colour, text) : text)
  const titleWidth = widest(['step', ...steps.map(({ title }) => title)])
  const requestWidth = widest(['request', ...steps.map(({ request }) => request)])
  const columns = (title: string, request: string) =>
    `${title.padEnd(titleWidth)}  ${request.padEnd(requestWidth)}`
  const line = (text = '') => console.log(text)

  return {
    line,
    heading: (text) => line(paint('bold', text)),
    header: () => line(paint('dim', `    ${columns('step', 'request')}  status  the operator saw`)),
    row({ title, request }, { status, seen, faults }) {
      const verdict = faults.length === 0 ? paint('green', 'ok') : paint('red', 'NO')
      const shown = paint(colourOf(status), String(status ?? '---').padEnd('status'.length))
      line(`${verdict}  ${columns(title, request)}  ${shown}  ${paint('dim', seen)}`)
      for (const fault of faults) line(paint('red', `    NOT AS TOLD: ${fault}`))
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
