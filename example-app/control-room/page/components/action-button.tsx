import type { ComponentChildren } from 'preact'
import type { ActionName, Actions } from '../../protocol.js'
import { act } from '../api.js'
import { useAsking } from './asking.js'

export interface ActionButtonProps<Name extends ActionName> {
  readonly name: Name
  readonly input: Actions[Name][0]
  readonly children: ComponentChildren
  readonly kind?: 'plain' | 'primary' | 'danger'
  /** What the button does, where its text alone does not say on what. */
  readonly label?: string
  readonly onDone?: (result: Actions[Name][1]) => void
}

/** A button that asks the room for something, and shows beside itself when that fails. */
export function ActionButton<Name extends ActionName>(props: ActionButtonProps<Name>) {
  const { name, input, children, kind = 'plain', label, onDone } = props
  const { isUnderWay, failure, ask } = useAsking()
  const press = () =>
    ask(async () => {
      const result = await act(name, input)
      onDone?.(result)
    })

  return (
    <span class="action">
      <button
        type="button"
        class={`button button-${kind}`}
        // A disabled button would lose the focus.
        aria-disabled={isUnderWay.value}
        aria-label={label}
        onClick={() => void press()}
      >
        {children}
      </button>
      <Failure text={failure.value} />
    </span>
  )
}

/** Says, where there is something to say, what did not work. */
export function Failure({ text }: { readonly text: string | undefined }) {
  return (
    <span class="failure" role="alert">
      {text}
    </span>
  )
}
