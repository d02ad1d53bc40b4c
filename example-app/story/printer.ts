import { styleText } from 'node:util'

export type Colour = Parameters<typeof styleText>[0]

/** Lines on standard output, coloured where the terminal can and nobody objects. */
export interface Printer {
  heading(text: string): void
  line(text?: string): void
  paint(colour: Colour, text: string): string
}

export function createPrinter(): Printer {
  const isColoured = process.stdout.isTTY === true && !process.env['NO_COLOR']
  const paint = (colour: Colour, text: string) => (isColoured ? styleText(colour, text) : text)
  const line = (text = '') => console.log(text)
  return { line, paint, heading: (text) => line(paint('bold', text)) }
}
