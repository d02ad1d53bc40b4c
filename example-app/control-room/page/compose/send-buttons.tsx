import { Failure } from '../components/action-button.js'
import { count } from '../components/words.js'
import { BackgroundLoad } from './background-load.js'
import { type CallEnd, calls, type HowMany, type LoggedCall, send } from './call-log.js'
import { draft } from './draft.js'

const BUTTONS: readonly (readonly [HowMany, string])[] = [
  ['one', 'Send it'],
  ['hundred', 'Send a hundred'],
  ['twenty-at-once', 'Twenty at once, to both receivers'],
]

/** Sends the call in the form, and says in a line how the last one ended. */
export function SendButtons() {
  const last = calls.value[0]
  const { end } = last ?? {}
  return (
    <>
      <div class="row">
        {BUTTONS.map(([howMany, text]) => (
          <button
            key={howMany}
            type="button"
            class={howMany === 'one' ? 'button button-primary' : 'button'}
            onClick={() => void send(draft.value, howMany)}
          >
            {text}
          </button>
        ))}
        <Failure text={end && 'why' in end ? end.why : undefined} />
      </div>
      <BackgroundLoad />
      <p class="last-call" role="status">
        {last && (
          <>
            {lineOf(last)} <a href="#views">See both views</a>
          </>
        )}
      </p>
    </>
  )
}

function lineOf({ number, end }: LoggedCall): string {
  return `Call ${number}: ${wordsFor(end)}`
}

function wordsFor(end: CallEnd): string {
  switch (end.kind) {
    case 'waiting':
      return 'under way, there is no answer yet.'
    case 'not-sent':
      return 'it was not sent.'
    case 'unknown':
      return 'the room has told nothing of it.'
    case 'counted':
      return `${count(end.result.calls)} calls have been answered.`
    case 'answered': {
      const { answer, operator } = end.result
      const got = 'status' in answer ? answer.status : 'no answer'
      return `the caller got ${got}, the operator saw ${operator.reason ?? operator.outcome}.`
    }
  }
}
