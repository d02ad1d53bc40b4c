import { Panel } from '../components/panel.js'
import { reveal } from '../components/reveal.js'
import { CallForm } from '../compose/call-form.js'
import { send } from '../compose/call-log.js'
import { draft } from '../compose/draft.js'
import { PRESETS, type Preset } from '../compose/presets.js'
import { SendButtons } from '../compose/send-buttons.js'
import './compose.css'

export function ComposePanel() {
  return (
    <Panel
      id="compose"
      title="Compose a call"
      about="Press a ready-made call, or compose your own."
    >
      <ul class="chips" aria-label="Ready-made calls">
        {PRESETS.map((preset) => (
          <li key={preset.title}>
            <button
              type="button"
              class="chip"
              title={preset.about}
              onClick={() => {
                void play(preset)
                reveal('views-title')
              }}
            >
              {preset.title}
            </button>
          </li>
        ))}
      </ul>
      <CallForm />
      <SendButtons />
    </Panel>
  )
}

async function play({ orders }: Preset): Promise<void> {
  for (const order of orders) {
    draft.value = order
    await send(order)
  }
}
