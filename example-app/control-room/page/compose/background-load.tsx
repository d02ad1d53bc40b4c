import { useSignal } from '@preact/signals'
import { act, textOf } from '../api.js'
import { Failure } from '../components/action-button.js'
import { Field } from '../components/field.js'
import { count } from '../components/words.js'
import { room } from '../state.js'

const CALLS_PER_SECOND = [0, 5, 50, 500]

/** Lets other callers go on calling, so that there is something to watch. */
export function BackgroundLoad() {
  const failure = useSignal<string | undefined>(undefined)

  async function choose(callsPerSecond: number): Promise<void> {
    failure.value = undefined
    try {
      await act('background-load', { callsPerSecond })
    } catch (error) {
      failure.value = textOf(error)
    }
  }

  return (
    <div class="stack">
      <Field
        label="Calls in the background"
        hint="Good and bad ones of other callers, for the metrics and events below."
      >
        <select
          value={room.value?.backgroundLoad ?? 0}
          onChange={({ currentTarget }) => void choose(Number(currentTarget.value))}
        >
          {choices(room.value?.backgroundLoad ?? 0).map((calls) => (
            <option key={calls} value={calls}>
              {calls === 0 ? 'none' : `${count(calls)} a second`}
            </option>
          ))}
        </select>
      </Field>
      <Failure text={failure.value} />
    </div>
  )
}

/** Another program may have set another number. */
const choices = (now: number): number[] =>
  [...new Set([...CALLS_PER_SECOND, now])].sort((one, other) => one - other)
