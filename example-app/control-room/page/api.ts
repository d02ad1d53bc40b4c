import { type ActionName, type Actions, UNFINISHED } from '../protocol.js'

const UNFINISHED_STATUS = 202

/** The room says itself why it did not do it: the visitor's order is wrong, or something does not answer. */
const SAID_BY_THE_ROOM = [400, 503]

/** Why the room did not do what it was asked: the message is for the visitor. */
export class ActionFailure extends Error {
  override readonly name = 'ActionFailure'
  /** The room has looked at it, and says why not. */
  readonly isRefused: boolean

  constructor(message: string, isRefused = false) {
    super(message)
    this.isRefused = isRefused
  }
}

/**
 * Asks the room to do something.
 *
 * @throws ActionFailure when it does not, or cannot be reached.
 */
export async function act<Name extends ActionName>(
  name: Name,
  input: Actions[Name][0],
): Promise<Actions[Name][1]> {
  let response = await post(name, input)
  while (response.status === UNFINISHED_STATUS) {
    response = await post(UNFINISHED, await response.json())
  }
  const text = await response.text().catch(() => '')
  if (!response.ok) {
    throw new ActionFailure(
      reasonOf(response.status, text),
      SAID_BY_THE_ROOM.includes(response.status),
    )
  }
  return JSON.parse(text) as Actions[Name][1]
}

/** The message for the visitor if something did not work. */
export const textOf = (failure: unknown): string =>
  failure instanceof Error ? failure.message : String(failure)

async function post(name: string, input: object): Promise<Response> {
  try {
    return await fetch(`api/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    })
  } catch {
    throw new ActionFailure('The room cannot be reached. Is `npm start` still running?')
  }
}

function reasonOf(status: number, text: string): string {
  const said = errorIn(text)
  if (said) return said
  if (status === 403) return 'The room does not know this page any more: open its new address.'
  return `The room could not do it (status ${status}).`
}

function errorIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined
  }
}
