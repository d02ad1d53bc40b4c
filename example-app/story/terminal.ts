import { styleText } from 'node:util'
import type { Outcome, Step } from './step.js'

type Colour = Parameters<typeof styleText>[0]

const isColoured = process.stdout.isTTY === true && !process.env['NO_COLOR']
const paint = (colour: Colour, text: string) => (isColoured ? styleText(colour, text) : text)

export const line = (text = ''): void => console.log(text)
export const heading = (text: string): void => line(paint('bold', text))

/** Prints the steps as aligned columns, coloured where the terminal can and nobody objects. */
export function createTable(steps: readonly Step[]) {
  const titleWidth = Math.max(...steps.map(({ title }) => title.length))
  const requestWidth = Math.max(...steps.map(({ request }) => request.length))
  const columns = (title: string, request: string) =>
    `${title.padEnd(titleWidth)}  ${request.padEnd(requestWidth)}`

  return {
    header: () => line(paint('dim', `    ${columns('step', 'request')}  status  the operator saw`)),
    row({ title, request, about }: Step, { status, seen, faults }: Outcome) {
      const verdict = faults.length === 0 ? paint('green', 'ok') : paint('red', 'NO')
      const shown = paint(colourOf(status), String(status ?? '---').padEnd('status'.length))
      line(`${verdict}  ${columns(title, request)}  ${shown}  ${seen}`)
      line(paint('dim', `    ${about}`))
      for (const fault of faults) line(paint('red', `    NOT AS EXPECTED: ${fault}`))
    },
  }
}

function colourOf(status: number | undefined): Colour {
  if (status === undefined || status >= 500) return 'magenta'
  return status < 400 ? 'green' : 'yellow'
}
